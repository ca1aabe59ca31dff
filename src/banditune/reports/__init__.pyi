from banditune.reports.figures import plot as plot
from banditune.reports.html_page import report as report
from banditune.reports.latex_tables import format_latex as format_latex
from banditune.reports.notebook_html import render_notebook as render_notebook
from banditune.reports.plain_text import format_text as format_text
