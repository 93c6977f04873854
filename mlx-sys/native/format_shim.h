// Stands in for C++20's <format> where the standard library lacks it (GCC before 13).
// mlx-c formats five error messages with plain "{}" fields; this header supplies just that and is forced in
// before its sources (`-include`), so that they stay as released.
#pragma once

#if __has_include(<version>)
#include <version>
#endif

#ifdef __cpp_lib_format
#include <format>
#else

#include <sstream>
#include <string>
#include <string_view>

namespace std {

// Writes `text` with each "{}" replaced by the next argument. A field without an argument is kept as it is.
inline void mlx_sys_format_to(ostringstream& out, string_view text) {
  out << text;
}

template <typename First, typename... Rest>
void mlx_sys_format_to(
    ostringstream& out,
    string_view text,
    const First& first,
    const Rest&... rest) {
  const auto field = text.find("{}");
  if (field == string_view::npos) {
    out << text;
    return;
  }
  out << text.substr(0, field) << first;
  mlx_sys_format_to(out, text.substr(field + 2), rest...);
}

template <typename... Args>
string format(string_view text, const Args&... args) {
  ostringstream out;
  mlx_sys_format_to(out, text, args...);
  return out.str();
}

} // namespace std

#endif
