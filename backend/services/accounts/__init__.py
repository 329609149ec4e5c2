"""Accounts: people, their passwords, logins and tokens, and what each may do."""
