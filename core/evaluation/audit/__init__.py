"""The decision audit: would the other way have been better? Each question is asked both ways.

`decisions` says which routes decide, asks again with a decision turned, and makes figures of both ways;
`audit` is all of it, with its report.
"""
