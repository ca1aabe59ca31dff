"""Models of past logs, the checks of their fits, and the tests of their assumptions."""
