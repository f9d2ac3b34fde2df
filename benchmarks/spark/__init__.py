"""How minwise does on Spark: against MLlib on the same documents, where time and bytes go, and as documents grow."""
