"""The papers that the studies rerun, and teeter itself, as BibTeX."""

from __future__ import annotations

from dataclasses import dataclass

import teeter

__all__ = ["PAPERS", "Paper"]


@dataclass(frozen=True)
class Paper:
    key: str
    short: str
    title: str
    kind: str
    fields: dict[str, str]

    def bibtex(self) -> str:
        lines = [f"  {name:<13} = {{{value}}}" for name, value in {"title": self.title, **self.fields}.items()]
        return f"@{self.kind}{{{self.key},\n" + ",\n".join(lines) + "\n}"


PAPERS = {
    paper.key: paper
    for paper in (
        Paper(
            "hahn2024",
            "Hahn & Rofin (2024)",
            "Why are Sensitive Functions Hard for Transformers?",
            "inproceedings",
            {
                "author": "Hahn, Michael and Rofin, Mark",
                "booktitle": "Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics",
                "year": "2024",
                "eprint": "2402.09963",
                "archiveprefix": "arXiv",
            },
        ),
        Paper(
            "vasudeva2025",
            "Vasudeva et al. (2025)",
            "Transformers Learn Low Sensitivity Functions: Investigations and Implications",
            "inproceedings",
            {
                "author": "Vasudeva, Bhavya and Fu, Deqing and Zhou, Tianyi and Kau, Elliott and Huang, Youqi "
                "and Sharan, Vatsal",
                "booktitle": "International Conference on Learning Representations",
                "year": "2025",
                "eprint": "2403.06925",
                "archiveprefix": "arXiv",
            },
        ),
        Paper(
            "teeter",
            "teeter",
            "teeter: how easily does a neural network change its mind?",
            "software",
            {"author": "{The teeter developers}", "year": "2026", "version": teeter.__version__},
        ),
    )
}
