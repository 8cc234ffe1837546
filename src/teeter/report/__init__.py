"""Figures, tables and the page, all drawn from the store alone."""

from teeter.report.contact_sheet import contact_sheet
from teeter.report.cube import cube_figure
from teeter.report.drawing import drawable, save, svg
from teeter.report.page import render, write_page
from teeter.report.terminal import claims_table
from teeter.report.tiers import about_tier
from teeter.report.token_picture import heat_map, position_profile, token_text

__all__ = [
    "about_tier",
    "claims_table",
    "contact_sheet",
    "cube_figure",
    "drawable",
    "heat_map",
    "position_profile",
    "render",
    "save",
    "svg",
    "token_text",
    "write_page",
]
