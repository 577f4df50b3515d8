"""The decision audit: would the other way have been better? Each question is asked both ways.

`loops` says which routes decide, `turning` asks again with a decision turned, `cases` pairs what came of both
ways, `decisions` makes figures of it, `report` writes them, `audit` is all of it.
"""
