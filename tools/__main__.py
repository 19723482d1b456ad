"""Write the generated parts of README.md and docs/ (`make docs-tables`)."""

from tools import figures, pages, pictures, tables

if __name__ == "__main__":
    contents = tables.all_tables()
    for page in pages.PAGES:
        page.write_text(pages.renew(figures.renewed(page), contents))
    for file, picture in pictures.cases().items():
        file.write_text(picture)
    pictures.draw_game()
