"""Work given to other processes and machines through Dask, which is imported only when it is asked for."""
