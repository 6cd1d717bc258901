"""Predictors that know nothing of the lecture: what a checkpoint must beat before its agreement means anything."""

from random import Random

from ad4edu_train.data.rows import HumanPair, PreferencePair

Values = dict[str, float | None]


def longer_side(pairs: list[HumanPair]) -> Values:
    """Prefers the AD with more words; equal lengths are ties."""
    return {pair.pair_id: float(len(pair.first.ad.split()) - len(pair.second.ad.split())) for pair in pairs}


def surface_classifier(train: list[PreferencePair], test: list[HumanPair]) -> Values:
    """Prefers by the AD's surface alone: logistic regression on word and character n-grams and length, fitted on train_prefs.

    It sees differences of the two ADs' features in both orders, so it has no bias to a side; it never sees a prompt.
    """
    import numpy as np
    from scipy.sparse import csr_matrix, hstack, vstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    if not train:
        return {pair.pair_id: None for pair in test}
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=3, sublinear_tf=True)
    texts = [side.ad for pair in train for side in (pair.chosen, pair.rejected)]
    vectorizers = [words.fit(texts), characters.fit(texts)]

    def features(ads: list[str]) -> csr_matrix:
        lengths = csr_matrix(np.array([[len(ad.split()) / 20] for ad in ads]))
        return hstack([*(vectorizer.transform(ads) for vectorizer in vectorizers), lengths]).tocsr()

    difference = features([pair.chosen.ad for pair in train]) - features([pair.rejected.ad for pair in train])
    model = LogisticRegression(fit_intercept=False, max_iter=1000)
    model.fit(vstack([difference, -difference]), [1] * len(train) + [0] * len(train))
    values = model.decision_function(features([pair.first.ad for pair in test]) - features([pair.second.ad for pair in test]))
    return {pair.pair_id: float(value) for pair, value in zip(test, values, strict=True)}


def shuffled_prompts(pairs: list[HumanPair], seed: int) -> dict[str, HumanPair]:
    """pair_id -> a pair of another moment, whose prompt it is asked under: one wrong prompt for all ADs of a moment.

    With a single moment there is no other prompt, and the map is empty.
    """
    firsts: dict[str, HumanPair] = {}
    for pair in pairs:
        firsts.setdefault(pair.moment_id, pair)
    moments = sorted(firsts)
    if len(moments) < 2:
        return {}
    Random(seed).shuffle(moments)
    # Each moment takes the prompt of the next one in a shuffled circle, so none keeps its own.
    other = {moment: firsts[following] for moment, following in zip(moments, moments[1:] + moments[:1], strict=True)}
    return {pair.pair_id: other[pair.moment_id] for pair in pairs}
