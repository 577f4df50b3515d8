"""The terms that pages use: one sentence and one source each. Data only; `ui.app.help_mark` puts it on
pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """`key` is how pages and addresses name it; `name` how the Glossary heads it; `sentence` what it is.

    `source` is author, year, title and venue, and `url` where to read it.
    """

    key: str
    name: str
    sentence: str
    source: str
    url: str


def _arxiv(number: str) -> str:
    return f"https://arxiv.org/abs/{number}"


def _doi(number: str) -> str:
    return f"https://doi.org/{number}"


_BOOK = "https://nlp.stanford.edu/IR-book/html/htmledition"
_MANNING = (
    "Manning, Raghavan & Schütze 2008, Introduction to Information Retrieval, Cambridge University Press"
)
_ALCE = "Gao, Yen, Yu & Chen 2023, Enabling Large Language Models to Generate Text with Citations, EMNLP"
_CHUNKING = "Smith & Troynikov 2024, Evaluating Chunking Strategies for Retrieval, Chroma Technical Report"
_POWER = "Cohen 1988, Statistical Power Analysis for the Behavioral Sciences, 2nd edition, Routledge"

_ALL = (
    # Metrics of rankings
    Term(
        "chunking",
        "Chunking",
        "A way to cut the documents of a source into passages: up to a size, at headings or at sentences.",
        f"{_MANNING}, section 2.1.2",
        f"{_BOOK}/choosing-a-document-unit-1.html",
    ),
    Term(
        "coverage",
        "Coverage",
        "The share of a question's labelled text that is among the first n tokens of a ranking, whatever "
        "passages the documents are cut into; a token is a word or a punctuation mark.",
        f"{_CHUNKING} (token-wise recall)",
        "https://research.trychroma.com/evaluating-chunking",
    ),
    Term(
        "coverage per token",
        "Coverage per token",
        "The share of the tokens read, up to the budget, that are labelled text read for the first time.",
        f"{_CHUNKING} (token-wise precision)",
        "https://research.trychroma.com/evaluating-chunking",
    ),
    Term(
        "nDCG",
        "nDCG (normalized discounted cumulative gain)",
        "Adds up the relevance grades of a ranking, counting lower ranks less, and divides by the sum that "
        "the best possible order would get, so that 1 is a perfect ranking.",
        "Järvelin & Kekäläinen 2002, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20(4)",
        _doi("10.1145/582415.582418"),
    ),
    Term(
        "recall",
        "Recall",
        "The share of a question's relevant passages that are among the first k of a ranking.",
        f"{_MANNING}, section 8.3",
        f"{_BOOK}/evaluation-of-unranked-retrieval-sets-1.html",
    ),
    Term(
        "precision",
        "Precision",
        "The share of the first k passages of a ranking that are relevant.",
        f"{_MANNING}, section 8.3",
        f"{_BOOK}/evaluation-of-unranked-retrieval-sets-1.html",
    ),
    Term(
        "MRR",
        "MRR (mean reciprocal rank)",
        "The mean over questions of 1 divided by the rank of the first relevant passage, or 0 if there is "
        "none.",
        "Voorhees 1999, The TREC-8 Question Answering Track Report, TREC-8",
        "https://trec.nist.gov/pubs/trec8/papers/qa_report.pdf",
    ),
    Term(
        "MAP",
        "MAP (mean average precision)",
        "The mean over questions of average precision: the precision at the rank of each relevant passage, "
        "averaged over all relevant passages, where one that was not found counts 0.",
        f"{_MANNING}, section 8.4",
        f"{_BOOK}/evaluation-of-ranked-retrieval-results-1.html",
    ),
    Term(
        "hit rate",
        "Hit rate (success at k)",
        "The share of questions with at least one relevant passage among the first k.",
        "MacAvaney, Macdonald & Ounis 2022, Streamlining Evaluation with ir-measures, ECIR",
        _arxiv("2111.13466"),
    ),
    # Search
    Term(
        "RAG",
        "RAG (retrieval-augmented generation)",
        "A language model writes the answer from passages that a search found for the question.",
        "Lewis et al. 2020, Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS",
        _arxiv("2005.11401"),
    ),
    Term(
        "BM25",
        "BM25",
        "Ranks passages by the words they share with the question; rare words count more, repeated words "
        "less each time, and long passages are scaled down.",
        "Robertson & Zaragoza 2009, The Probabilistic Relevance Framework: BM25 and Beyond, Foundations and "
        "Trends in Information Retrieval 3(4)",
        _doi("10.1561/1500000019"),
    ),
    Term(
        "dense retrieval",
        "Dense retrieval",
        "Ranks passages by how similar their embedding is to the embedding of the question.",
        "Karpukhin et al. 2020, Dense Passage Retrieval for Open-Domain Question Answering, EMNLP",
        _arxiv("2004.04906"),
    ),
    Term(
        "embedding",
        "Embedding",
        "A vector that a model computes from a text, so that texts with similar meaning have vectors close "
        "to each other.",
        "Reimers & Gurevych 2019, Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks, EMNLP",
        _arxiv("1908.10084"),
    ),
    Term(
        "cosine similarity",
        "Cosine similarity",
        "The cosine of the angle between two vectors: 1 for the same direction, 0 for none in common.",
        f"{_MANNING}, section 6.3",
        f"{_BOOK}/dot-products-1.html",
    ),
    Term(
        "late interaction",
        "Late interaction (ColBERT)",
        "Keeps a vector for each token, matches each question token to its most similar passage token, and "
        "adds up these similarities (MaxSim).",
        "Khattab & Zaharia 2020, ColBERT: Efficient and Effective Passage Search via Contextualized Late "
        "Interaction over BERT, SIGIR",
        _arxiv("2004.12832"),
    ),
    Term(
        "learned sparse",
        "Learned sparse retrieval (SPLADE)",
        "A model gives each text weights over a vocabulary, including words that the text does not contain, "
        "and search matches these weights like words.",
        "Formal, Piwowarski & Clinchant 2021, SPLADE: Sparse Lexical and Expansion Model for First Stage "
        "Ranking, SIGIR",
        _arxiv("2107.05720"),
    ),
    # Fusion and reranking
    Term(
        "RRF",
        "RRF (reciprocal rank fusion)",
        "Fuses rankings by rank alone: a passage's score is the sum of 1 / (k + rank) over the lists that "
        "found it.",
        "Cormack, Clarke & Buettcher 2009, Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank "
        "Learning Methods, SIGIR",
        _doi("10.1145/1571941.1572114"),
    ),
    Term(
        "linear fusion",
        "Linear fusion",
        "Brings the scores of each list to one scale and adds them up with a weight for each list.",
        "Bruch, Gai & Ingber 2022, An Analysis of Fusion Functions for Hybrid Retrieval, arXiv",
        _arxiv("2210.11934"),
    ),
    Term(
        "MMR",
        "MMR (maximal marginal relevance)",
        "Chooses passages one at a time, each for its relevance minus its similarity to those already "
        "chosen.",
        "Carbonell & Goldstein 1998, The Use of MMR, Diversity-Based Reranking for Reordering Documents and "
        "Producing Summaries, SIGIR",
        _doi("10.1145/290941.291025"),
    ),
    Term(
        "reranker",
        "Reranker",
        "Scores the best passages of a first search a second time, by a more expensive method, and reorders "
        "them.",
        "Nogueira, Yang, Cho & Lin 2019, Multi-Stage Document Ranking with BERT, arXiv",
        _arxiv("1910.14424"),
    ),
    Term(
        "cross-encoder",
        "Cross-encoder",
        "A reranking model that reads the question and one passage together and returns a score for the "
        "pair.",
        "Nogueira & Cho 2019, Passage Re-ranking with BERT, arXiv",
        _arxiv("1901.04085"),
    ),
    Term(
        "quantised vectors",
        "Quantised vectors",
        "Vectors kept in one bit or one byte for each dimension, for a first pass whose finds are scored by "
        "the whole vectors.",
        "Yamada, Asai & Hajishirzi 2021, Efficient Passage Retrieval with Hashing for Open-domain Question "
        "Answering, ACL",
        _arxiv("2106.00882"),
    ),
    Term(
        "query drift",
        "Query drift",
        "What relevance feedback does where the first passages, which it takes for relevant, are not: the "
        "query moves to what they are about.",
        "Carpineto & Romano 2012, A Survey of Automatic Query Expansion in Information Retrieval, ACM "
        "Computing Surveys",
        _doi("10.1145/2071389.2071390"),
    ),
    Term(
        "adaptive k",
        "Adaptive k",
        "Ends a list at the largest drop from one score to the next, instead of after a fixed number of "
        "passages.",
        "Taguchi, Maekawa & Bhutani 2025, Efficient Context Selection for Long-Context QA, arXiv",
        _arxiv("2506.08479"),
    ),
    Term(
        "personalised PageRank",
        "Personalised PageRank",
        "The share of time that a walk along the edges of a graph spends at each node, when it begins again "
        "and again at chosen ones.",
        "Gutiérrez, Shu, Qi, Zhou & Su 2025, From RAG to Memory, arXiv",
        _arxiv("2502.14802"),
    ),
    Term(
        "listwise reranking",
        "Listwise reranking",
        "A language model reads several passages at once and returns their order, which may depend on the "
        "order given.",
        "Sun et al. 2023, Is ChatGPT Good at Search? Investigating Large Language Models as Re-Ranking "
        "Agents, EMNLP",
        _arxiv("2304.09542"),
    ),
    Term(
        "setwise reranking",
        "Setwise reranking",
        "A language model chooses the best of a few passages, by the probability of each one's letter, and a "
        "sort is made of such choices.",
        "Zhuang, Zhuang, Koopman & Zuccon 2024, A Setwise Approach for Effective and Highly Efficient "
        "Zero-shot Ranking with Large Language Models, SIGIR",
        _arxiv("2310.09497"),
    ),
    # What is searched with
    Term(
        "Metadata filter",
        "Metadata filter",
        "A condition on what is known of a document beside its text, such as its owner or its date, that "
        "passages have to meet to be found.",
        "Gollapudi et al. 2023, Filtered-DiskANN, WWW",
        "https://doi.org/10.1145/3543507.3583552",
    ),
    Term(
        "Self-query",
        "Self-query",
        "Reads filters on metadata from the question, and searches only what meets them.",
        "LangChain 2023, SelfQueryRetriever",
        "https://python.langchain.com/docs/how_to/self_query/",
    ),
    Term(
        "Half-life",
        "Half-life",
        "The age after which a document's score is halved.",
        "Li & Croft 2003, Time-Based Language Models, CIKM",
        "https://doi.org/10.1145/956863.956951",
    ),
    Term(
        "RM3",
        "RM3 (relevance feedback by terms)",
        "Takes the first passages as relevant, adds the terms they use most to the question, each with a "
        "weight, and searches BM25 again.",
        "Abdul-Jaleel et al. 2004, UMass at TREC 2004: Novelty and HARD, TREC",
        "https://trec.nist.gov/pubs/trec13/papers/umass.novelty.hard.pdf",
    ),
    Term(
        "Rocchio",
        "Rocchio feedback",
        "Moves the question's vector towards the mean of the first passages found, and searches again.",
        "Li, Mourad, Zhuang, Koopman & Zuccon 2022, Pseudo Relevance Feedback with Deep Language Models and "
        "Dense Retrievers, TOIS",
        _arxiv("2108.11044"),
    ),
    Term(
        "Query2doc",
        "Query2doc",
        "A language model writes a hypothetical passage; BM25 searches with the question, repeated, and that "
        "passage.",
        "Wang, Yang & Wei 2023, Query2doc: Query Expansion with Large Language Models, EMNLP",
        _arxiv("2303.07678"),
    ),
    Term(
        "Doc2query",
        "Doc2query",
        "A language model writes questions that a passage answers, and BM25 searches the passage with them "
        "behind it.",
        "Nogueira, Yang, Lin & Cho 2019, Document Expansion by Query Prediction, arXiv",
        _arxiv("1904.08375"),
    ),
    Term(
        "query rewriting",
        "Query rewriting",
        "A language model rewrites the question before the search, for example a follow-up into a question "
        "that stands alone.",
        "Ma, Gong, He, Zhao & Duan 2023, Query Rewriting for Retrieval-Augmented Large Language Models, "
        "EMNLP",
        _arxiv("2305.14283"),
    ),
    Term(
        "HyDE",
        "HyDE (hypothetical document embeddings)",
        "A language model writes a hypothetical passage that answers the question, and dense retrieval "
        "searches with the embedding of that passage.",
        "Gao, Ma, Lin & Callan 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels, arXiv",
        _arxiv("2212.10496"),
    ),
    Term(
        "HyPE",
        "HyPE (hypothetical prompt embeddings)",
        "A language model writes questions for each passage when the corpus is indexed, and the user's "
        "question is matched to these questions.",
        "Vake, Vičič & Tošić 2025, Bridging the Question-Answer Gap in Retrieval-Augmented Generation: "
        "Hypothetical Prompt Embeddings, SSRN",
        _doi("10.2139/ssrn.5139335"),
    ),
    Term(
        "multi-query",
        "Multi-query",
        "A language model writes variants of the question, and the results of all of them are combined.",
        "LangChain 2023, MultiQueryRetriever, LangChain documentation",
        "https://python.langchain.com/docs/how_to/MultiQueryRetriever/",
    ),
    Term(
        "RAG-Fusion",
        "RAG-Fusion",
        "Searches with several variants of the question and fuses their rankings by reciprocal rank.",
        "Rackauckas 2024, RAG-Fusion: a New Take on Retrieval-Augmented Generation, arXiv",
        _arxiv("2402.03367"),
    ),
    Term(
        "step-back",
        "Step-back prompting",
        "A language model writes the more general question behind the question, and both are searched.",
        "Zheng et al. 2023, Take a Step Back: Evoking Reasoning via Abstraction in Large Language Models, "
        "arXiv",
        _arxiv("2310.06117"),
    ),
    Term(
        "decomposition",
        "Decomposition",
        "A language model splits the question into simpler ones, which are searched in parallel or one after "
        "the other.",
        "Zhou et al. 2022, Least-to-Most Prompting Enables Complex Reasoning in Large Language Models, arXiv",
        _arxiv("2205.10625"),
    ),
    # Routes that decide
    Term(
        "CRAG",
        "CRAG (corrective RAG)",
        "Grades the retrieved passages and, depending on the grade, uses them, adds a web search, or "
        "searches the web instead.",
        "Yan, Gu, Zhu & Ling 2024, Corrective Retrieval Augmented Generation, arXiv",
        _arxiv("2401.15884"),
    ),
    Term(
        "Self-RAG",
        "Self-RAG",
        "A model trained to write reflection tokens decides when to search and judges whether each segment "
        "of its answer is relevant, supported and useful.",
        "Asai, Wu, Wang, Sil & Hajishirzi 2023, Self-RAG: Learning to Retrieve, Generate, and Critique "
        "through Self-Reflection, arXiv",
        _arxiv("2310.11511"),
    ),
    Term(
        "agentic retrieval",
        "Agentic retrieval",
        "A language model chooses the next action, such as a search or an answer, in a loop until it is "
        "done.",
        "Yao et al. 2022, ReAct: Synergizing Reasoning and Acting in Language Models, arXiv",
        _arxiv("2210.03629"),
    ),
    Term(
        "router",
        "Router (adaptive retrieval)",
        "Classifies the question and gives it to the route that suits its kind.",
        "Jeong, Baek, Cho, Hwang & Park 2024, Adaptive-RAG: Learning to Adapt Retrieval-Augmented Large "
        "Language Models through Question Complexity, NAACL",
        _arxiv("2403.14403"),
    ),
    Term(
        "FiD",
        "FiD (Fusion-in-Decoder)",
        "A reader model encodes each passage separately with the question and reads all of them together "
        "when it writes the answer.",
        "Izacard & Grave 2021, Leveraging Passage Retrieval with Generative Models for Open Domain Question "
        "Answering, EACL",
        _arxiv("2007.01282"),
    ),
    Term(
        "CAG",
        "CAG (cache-augmented generation)",
        "Puts the whole corpus into the model's context, computed once and cached, instead of searching it.",
        "Chan, Chen, Cheng & Huang 2024, Don't Do RAG: When Cache-Augmented Generation is All You Need for "
        "Knowledge Tasks, arXiv",
        _arxiv("2412.15605"),
    ),
    # What is searched
    Term(
        "chunk",
        "Chunk (passage)",
        "A piece of a document, cut to a length that can be searched, embedded and shown on its own.",
        "Lewis et al. 2020, Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks, NeurIPS",
        _arxiv("2005.11401"),
    ),
    Term(
        "parent and children",
        "Parent and children",
        "Small pieces (children) are searched because they match precisely, and the passage that contains "
        "them (their parent) is returned.",
        "Chen et al. 2023, Dense X Retrieval: What Retrieval Granularity Should We Use?, arXiv",
        _arxiv("2312.06648"),
    ),
    Term(
        "contextual retrieval",
        "Contextual retrieval",
        "A language model writes a short context for each passage, and the passage is indexed together with "
        "it.",
        "Anthropic 2024, Introducing Contextual Retrieval, anthropic.com",
        "https://www.anthropic.com/news/contextual-retrieval",
    ),
    # Labels
    Term(
        "labelled question",
        "Labelled question",
        "A question for which people or a dataset say which passages are relevant.",
        "Voorhees 2002, The Philosophy of Information Retrieval Evaluation, CLEF 2001, LNCS 2406",
        _doi("10.1007/3-540-45691-0_34"),
    ),
    Term(
        "relevance grade",
        "Relevance grade",
        "How well a passage answers a question, on a scale of more than two steps, such as 0 to 3.",
        "Järvelin & Kekäläinen 2000, IR evaluation methods for retrieving highly relevant documents, SIGIR",
        _doi("10.1145/345508.345545"),
    ),
    Term(
        "unjudged passage",
        "Unjudged passage",
        "A passage that nobody has labelled for the question; metrics count it as not relevant, which may be "
        "wrong.",
        "Buckley & Voorhees 2004, Retrieval evaluation with incomplete information, SIGIR",
        _doi("10.1145/1008992.1009000"),
    ),
    Term(
        "pool",
        "Pool",
        "The passages that people judge for a question: the top passages of several routes combined, so that"
        " the labels do not favour one route.",
        "Zobel 1998, How Reliable Are the Results of Large-Scale Information Retrieval Experiments?, SIGIR",
        _doi("10.1145/290941.291014"),
    ),
    Term(
        "Cohen's kappa",
        "Cohen's kappa",
        "How often two annotators give the same grade beyond what chance would give: 1 is full agreement, 0 "
        "is chance.",
        "Cohen 1960, A Coefficient of Agreement for Nominal Scales, Educational and Psychological "
        "Measurement 20(1)",
        _doi("10.1177/001316446002000104"),
    ),
    Term(
        "weighted kappa",
        "Weighted kappa",
        "Cohen's kappa in which a large difference of grades counts more than a small one, in proportion to "
        "its size (linear) or its square (quadratic).",
        "Cohen 1968, Weighted kappa: Nominal scale agreement with provision for scaled disagreement or "
        "partial credit, Psychological Bulletin 70(4)",
        _doi("10.1037/h0026256"),
    ),
    Term(
        "LLM judge",
        "LLM judge (of relevance)",
        "A language model that grades, in place of a person, whether a passage is relevant to a question; "
        "what its grades are worth is its agreement with people's.",
        "Thomas, Spielman, Craswell & Mitra 2024, Large Language Models can Accurately Predict Searcher "
        "Preferences, SIGIR",
        _arxiv("2309.10621"),
    ),
    Term(
        "unjudged passage",
        "Unjudged passage",
        "A passage that a route returned and nobody labelled; metrics count it as not relevant, which may be "
        "wrong.",
        "Buckley & Voorhees 2004, Retrieval Evaluation with Incomplete Information, SIGIR",
        _doi("10.1145/1008992.1009000"),
    ),
    Term(
        "BEIR",
        "BEIR",
        "A benchmark of public retrieval datasets, whose format (corpus, queries and qrels) RouteScope "
        "reads.",
        "Thakur et al. 2021, BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information "
        "Retrieval Models, NeurIPS Datasets and Benchmarks",
        _arxiv("2104.08663"),
    ),
    Term(
        "TREC run",
        "TREC run",
        "A text file of rankings in the format of the TREC evaluations, one line for each question and "
        "passage with rank and score, which other evaluation tools read.",
        "Voorhees & Harman (editors) 2005, TREC: Experiment and Evaluation in Information Retrieval, MIT "
        "Press",
        "https://trec.nist.gov/",
    ),
    # Statistics
    Term(
        "baseline",
        "Baseline",
        "The route that the others are compared with, usually the one in use today.",
        "Armstrong, Moffat, Webber & Zobel 2009, Improvements That Don't Add Up: Ad-Hoc Retrieval Results "
        "Since 1998, CIKM",
        _doi("10.1145/1645953.1646031"),
    ),
    Term(
        "confidence interval",
        "Confidence interval",
        "A range computed so that, over many samples of questions, 95% of such ranges would hold the true "
        "value; here a t interval of the values and one more at each end of the scale.",
        'Agresti & Coull 1998, Approximate Is Better than "Exact" for Interval Estimation of Binomial '
        "Proportions, The American Statistician 52(2)",
        _doi("10.1080/00031305.1998.10480550"),
    ),
    Term(
        "bootstrap",
        "Bootstrap (resample)",
        "Resamples the measured questions many times, with replacement, to see how much a mean depends on "
        "the choice of questions.",
        "Efron 1979, Bootstrap Methods: Another Look at the Jackknife, The Annals of Statistics 7(1)",
        _doi("10.1214/aos/1176344552"),
    ),
    Term(
        "permutation test",
        "Paired permutation test (randomization test)",
        "Swaps the values of two routes at random within each question and counts how often the difference "
        "of means is at least as large as the measured one.",
        "Smucker, Allan & Carterette 2007, A Comparison of Statistical Significance Tests for Information "
        "Retrieval Evaluation, CIKM",
        _doi("10.1145/1321440.1321528"),
    ),
    Term(
        "p-value",
        "p-value",
        "The probability of a difference at least as large as the measured one if the two routes did not "
        "differ.",
        "Wasserstein & Lazar 2016, The ASA Statement on p-Values: Context, Process, and Purpose, The "
        "American Statistician 70(2)",
        _doi("10.1080/00031305.2016.1154108"),
    ),
    Term(
        "Holm correction",
        "Holm correction",
        "Raises p-values by the number of comparisons, so that a chance difference among many comparisons "
        "does not pass for a real one.",
        "Holm 1979, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of "
        "Statistics 6(2)",
        "https://www.jstor.org/stable/4615733",
    ),
    Term(
        "mcnemar",
        "McNemar test",
        "Asks whether more questions broke than were fixed, or fewer, than chance gives; unchanged questions "
        "do not count.",
        "McNemar 1947, Note on the sampling error of the difference between correlated proportions or "
        "percentages, Psychometrika 12(2)",
        _doi("10.1007/BF02295996"),
    ),
    Term(
        "decision audit",
        "Decision audit",
        "Asks each question again with one decision of a route turned to its other way, and compares what "
        "came of both.",
        "Bottou et al. 2013, Counterfactual Reasoning and Learning Systems, Journal of Machine Learning "
        "Research 14",
        "https://jmlr.org/papers/v14/bottou13a.html",
    ),
    Term(
        "fired",
        "Fired (decision)",
        "A decision fires when it intervenes: it spends model calls, discards passages or abstains, where "
        "its other way leaves things as they are.",
        "Forgy 1982, Rete: A Fast Algorithm for the Many Pattern/Many Object Pattern Match Problem, "
        "Artificial Intelligence 19(1)",
        _doi("10.1016/0004-3702(82)90020-0"),
    ),
    Term(
        "decision precision",
        "Precision of a decision",
        "Of the questions where a decision fired, the share where firing gave more than its other way would "
        "have; a tie is no success.",
        "Powers 2011, Evaluation: From Precision, Recall and F-Measure to ROC, Informedness, Markedness and "
        "Correlation, Journal of Machine Learning Technologies 2(1)",
        _arxiv("2010.16061"),
    ),
    Term(
        "decision recall",
        "Recall of a decision",
        "Of the questions where firing gives more than its other way, the share where the decision fired.",
        "Powers 2011, Evaluation: From Precision, Recall and F-Measure to ROC, Informedness, Markedness and "
        "Correlation, Journal of Machine Learning Technologies 2(1)",
        _arxiv("2010.16061"),
    ),
    Term(
        "gain when fired",
        "Gain when fired",
        "The mean of a figure where a decision fired, minus its mean on the same questions with the decision "
        "turned to its other way.",
        "Rubin 1974, Estimating Causal Effects of Treatments in Randomized and Nonrandomized Studies, "
        "Journal of Educational Psychology 66(5)",
        _doi("10.1037/h0037350"),
    ),
    Term(
        "price when fired",
        "Price when fired",
        "How many more model calls, tokens and seconds a route takes where its decision fires than with the "
        "decision turned.",
        "Russell & Wefald 1991, Principles of Metareasoning, Artificial Intelligence 49",
        _doi("10.1016/0004-3702(91)90015-C"),
    ),
    Term(
        "effect size",
        "Effect size (d_z)",
        "The mean difference divided by the standard deviation of the differences, so that it does not "
        "depend on the scale of the metric.",
        f"{_POWER}, section 2.3.5",
        _doi("10.4324/9780203771587"),
    ),
    Term(
        "superiority",
        "Probability of superiority",
        "The share of questions on which a route is better than the baseline, with ties counted as half.",
        "Grissom 1994, Probability of the Superior Outcome of One Treatment Over Another, Journal of Applied "
        "Psychology 79(2)",
        _doi("10.1037/0021-9010.79.2.314"),
    ),
    Term(
        "detectable difference",
        "Detectable difference",
        "The smallest true difference that a test on this many questions detects four times in five.",
        f"{_POWER}, chapter 2",
        _doi("10.4324/9780203771587"),
    ),
    Term(
        "margin",
        "Margin",
        "The loss of the metric that is accepted for a cheaper route, which ships if its interval against "
        "every other route shows that it is at most this much worse.",
        "Berger 1982, Multiparameter Hypothesis Testing and Acceptance Sampling, Technometrics 24(4)",
        _doi("10.1080/00401706.1982.10487790"),
    ),
    Term(
        "label next",
        "What to label next",
        "Unjudged passages that one of two routes ranks higher than the other: a label of one "
        "changes which of "
        "the routes is better, a label of a passage that both rank alike does not.",
        "Carterette, Allan & Sitaraman 2006, Minimal test collections for retrieval evaluation, SIGIR",
        _doi("10.1145/1148170.1148219"),
    ),
    Term(
        "regression set",
        "Regression set",
        "A label set of questions that people reported as answered wrongly; the gate asks them "
        "again before each "
        "release and names those that broke again.",
        "Regression testing: Rothermel & Harrold 1996, Analyzing regression test selection "
        "techniques, IEEE TSE"
        " 22(8)",
        _doi("10.1109/32.536955"),
    ),
    Term(
        "equal routes",
        "Equal routes",
        "Routes that returned the same passages in the same order on every question: they count as "
        "one result, "
        "and once in the correction for many comparisons.",
        "Holm 1979, A simple sequentially rejective multiple test procedure, Scandinavian Journal "
        "of Statistics"
        " 6(2)",
        "https://www.jstor.org/stable/4615733",
    ),
    # Choosing
    Term(
        "threshold",
        "Threshold",
        "The score at which a decision changes, for example the lowest score of a passage that counts as "
        "relevant.",
        "Fawcett 2006, An introduction to ROC analysis, Pattern Recognition Letters 27(8)",
        _doi("10.1016/j.patrec.2005.10.010"),
    ),
    Term(
        "calibration",
        "Calibration",
        "Whether a score can be read as a probability: of the cases scored 0.8, 80 % should be right.",
        "Guo, Pleiss, Sun & Weinberger 2017, On Calibration of Modern Neural Networks, ICML",
        _arxiv("1706.04599"),
    ),
    Term(
        "held-out questions",
        "Held-out questions (dev and test)",
        "Questions that are not used to choose a value, so that figures measured on them are not too "
        "optimistic.",
        "Hastie, Tibshirani & Friedman 2009, The Elements of Statistical Learning, Springer, chapter 7",
        _doi("10.1007/978-0-387-84858-7"),
    ),
    Term(
        "Pareto front",
        "Pareto front",
        "The routes that no other route beats on both quality and cost.",
        "Deb, Pratap, Agarwal & Meyarivan 2002, A Fast and Elitist Multiobjective Genetic Algorithm: "
        "NSGA-II, IEEE Transactions on Evolutionary Computation 6(2)",
        _doi("10.1109/4235.996017"),
    ),
    Term(
        "release criteria",
        "Release criteria (gate)",
        "Limits that a route must meet before it is shipped, checked by a page or by a command that fails "
        "the build.",
        "Humble & Farley 2010, Continuous Delivery, Addison-Wesley",
        "https://continuousdelivery.com/",
    ),
    # Time
    Term(
        "p50 and p95",
        "p50 and p95 (percentiles)",
        "The times within which 50 % and 95 % of the questions finish; p50 is the median.",
        "Dean & Barroso 2013, The Tail at Scale, Communications of the ACM 56(2)",
        _doi("10.1145/2408776.2408794"),
    ),
    Term(
        "critical path",
        "Critical path",
        "The chain of steps that determines how long a route takes: only a faster step on it makes the route"
        " faster.",
        "Kelley & Walker 1959, Critical-Path Planning and Scheduling, Eastern Joint Computer Conference",
        _doi("10.1145/1460299.1460318"),
    ),
    Term(
        "trace",
        "Trace",
        "The record of one run of a route, made of spans, which RouteScope exports in the format of "
        "OpenTelemetry.",
        "OpenTelemetry Authors 2024, Traces, OpenTelemetry documentation",
        "https://opentelemetry.io/docs/concepts/signals/traces/",
    ),
    Term(
        "span",
        "Span",
        "One step in a trace, with its name, start, duration, attributes and parent step.",
        "Sigelman et al. 2010, Dapper, a Large-Scale Distributed Systems Tracing Infrastructure, Google",
        "https://research.google/pubs/dapper-a-large-scale-distributed-systems-tracing-infrastructure/",
    ),
    # Answers
    Term(
        "citation precision",
        "Citation precision and recall",
        "Precision is the share of an answer's citations that support it; recall is the share of what needs "
        "support that is cited.",
        _ALCE,
        _arxiv("2305.14627"),
    ),
    Term(
        "abstention",
        "Abstention",
        "Replying that the documents do not contain the answer, which is correct only if they do not.",
        "Rajpurkar, Jia & Liang 2018, Know What You Don't Know: Unanswerable Questions for SQuAD, ACL",
        _arxiv("1806.03822"),
    ),
    Term(
        "execution accuracy",
        "Execution accuracy",
        "The share of questions whose SQL query returns the rows of the gold query; answer accuracy is the "
        "share whose answer tells every value of those rows.",
        "Zhong, Yu & Klein 2020, Semantic Evaluation for Text-to-SQL with Distilled Test Suites, EMNLP",
        _arxiv("2010.02840"),
    ),
    # Comparing rankings
    Term(
        "RBO",
        "RBO (rank-biased overlap)",
        "How similar two rankings are, with higher ranks counting more: 1 for the same ranking, 0 for none "
        "in common.",
        "Webber, Moffat & Zobel 2010, A Similarity Measure for Indefinite Rankings, ACM TOIS 28(4)",
        _doi("10.1145/1852102.1852106"),
    ),
)

TERMS: Mapping[str, Term] = {term.key: term for term in _ALL}
# Metrics by the part of their name before "@"; those that are not here are explained where they are shown.
METRICS: Mapping[str, str] = {
    "ndcg": "nDCG",
    "recall": "recall",
    "precision": "precision",
    "mrr": "MRR",
    "map": "MAP",
    "hit": "hit rate",
    "unjudged": "unjudged passage",
    "citation_precision": "citation precision",
    "citation_recall": "citation precision",
    "abstention_precision": "abstention",
    "abstention_recall": "abstention",
    "false_abstention": "abstention",
    "execution_accuracy": "execution accuracy",
    "answer_accuracy": "execution accuracy",
}
_NUMBER = re.compile(r"(?:arxiv:|doi:)\s*([^\s,;()]+)", re.IGNORECASE)


def of_metric(metric: str) -> str | None:
    """The key of a metric's term: "ndcg@10" is nDCG."""
    return METRICS.get(metric.split("@")[0])


def of_source(source: str | None) -> str | None:
    """The key of the first term whose source has the arXiv number or DOI that `source` names first.

    A route names its paper, so that a page finds its term without knowing any route.
    """
    for number in _NUMBER.findall(source or ""):
        for term in _ALL:
            if term.url.endswith(f"/{number}"):
                return term.key
    return None
