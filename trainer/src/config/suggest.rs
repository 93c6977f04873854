//! Did-you-mean: the known name nearest to a mistyped one.

/// The candidate nearest to `name` by edit distance, when it is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    // A third of the letters may be wrong, and one letter always.
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_swapped_or_missing_letter_finds_the_name() {
        assert_eq!(nearest("rnak", ["rank", "scale"]), Some("rank"));
        assert_eq!(nearest("learnin_rate", ["learning_rate", "eps"]), Some("learning_rate"));
        assert_eq!(nearest("RANK", ["rank"]), Some("rank"));
    }

    #[test]
    fn an_unrelated_name_finds_nothing() {
        assert_eq!(nearest("banana", ["rank", "scale"]), None);
    }
}
