"""A page in a browser, as a person uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selenium.webdriver import ActionChains
from selenium.webdriver.support.ui import WebDriverWait


class Page:
    """A page in the browser. Whatever it logs, a refused script included, is a mistake."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser, self.path = browser, path
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(path.as_uri())
        self.until("return document.getElementById('status').textContent !== ''")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def until(self, condition: str, *arguments: Any) -> None:
        WebDriverWait(self.browser, 30, poll_frequency=0.02).until(
            lambda _: self.run(condition, *arguments), f"never came true: {condition}"
        )

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        return self.browser.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        """The text in sight of an element, read in one go: rows are drawn anew when the list moves."""
        return self.run(
            "const found = document.querySelector(arguments[0]);"
            "return found.checkVisibility() ? found.innerText : '';",
            selector,
        )

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.browser).send_keys(*keys).perform()

    @property
    def status(self) -> str:
        return self.text("#status")

    @property
    def rows(self) -> list[str]:
        return self.run(
            "return [...document.querySelectorAll('.row .name')].map(e => e.textContent)"
        )

    def await_status(self, text: str) -> None:
        self.until("return document.getElementById('status').textContent === arguments[0]", text)

    def await_detail(self, text: str) -> None:
        self.until(
            "return document.getElementById('detail').textContent.includes(arguments[0])", text
        )

    def choose(self, number: int) -> None:
        """Click on a row in sight."""
        self.run("document.getElementById(arguments[0]).click()", f"row-{number}")
        self.until(
            "return document.querySelector('#detail .dim')?.textContent.startsWith(arguments[0])",
            f"{number + 1:,} of",
        )

    def log(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]
