"""The page of results: each script writes its own section and leaves the others as they are."""

from __future__ import annotations

import os
import re
from pathlib import Path

PAGE = Path(__file__).with_name("README.md")


def write_section(title: str, text: str) -> None:
    """Put ``text`` under ``## title``, in the place of what is there or at the end."""
    section = f"## {title}\n\n{text.strip()}\n"
    before, found, after = _split(PAGE.read_text(), title)
    PAGE.write_text(
        before.rstrip() + "\n\n" + section + ("\n" + after if after else "")
        if found
        else before.rstrip() + "\n\n" + section
    )


def beside() -> str:
    """What else the machine does when a script begins: with more than nothing, times say little, and ratios vary."""
    return f"the load average of {os.cpu_count()} processors was {os.getloadavg()[0]:.1f} before"


def write_head(text: str) -> None:
    """Put ``text`` at the top of the page, before the first section."""
    sections = re.search(r"^## ", PAGE.read_text(), flags=re.M)
    PAGE.write_text(text.strip() + "\n" + ("" if sections is None else "\n" + PAGE.read_text()[sections.start() :]))


def _split(page: str, title: str) -> tuple[str, bool, str]:
    found = re.search(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", page, flags=re.S | re.M)
    return (page, False, "") if found is None else (page[: found.start()], True, page[found.end() :])
