"""The use cases that every facade shares. Each takes values of the domain and knows no protocol."""
