"""The measuring code behind `sharpwave bench`: commands that print JSON. No data of others is kept here."""
