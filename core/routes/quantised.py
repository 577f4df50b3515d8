from core.routes.prelude import Annotated, Answer, Literal, Parameter, Steps, route


@route("Dense, quantised", family="scoring", paper="Yamada, Asai & Hajishirzi 2021, arXiv:2106.00882")
def quantised(
    do: Steps,
    codes: Annotated[Literal["binary", "int8"], "binary: one bit a dimension; int8: one byte"] = "binary",
    candidates: Annotated[int, Parameter(10, 1000, "passages of the first pass, scored exactly")] = 200,
    compare: Annotated[bool, "also search exactly, to show what the first pass lost"] = False,
) -> Answer:
    """Search coded vectors, then score the first candidates by their whole vectors."""
    vector = do.embed(do.question)
    first = do.coded(vector, codes, candidates)
    if compare:
        do.nearest(vector)
    return do.answer(do.question, do.exactly(vector, first))
