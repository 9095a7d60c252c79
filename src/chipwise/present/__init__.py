"""How a result looks anywhere: tables, plots, pages."""
