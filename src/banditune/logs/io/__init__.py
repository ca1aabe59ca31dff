"""Readers of past logs: text and Parquet files, data frames, roles of columns, and checks of rows."""
