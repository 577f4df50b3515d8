"""The decision audit: would the other way have been better? Each question is asked both ways.

`turning` says which routes decide, and asks again with a decision turned; `decisions` pairs what came of both
ways and makes figures of it, `report` writes them, `audit` is all of it.
"""
