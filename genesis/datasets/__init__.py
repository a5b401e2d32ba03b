"""Small real data, for examples, tests and the demo: digits come with the package, others with scikit-learn; and folders of
pictures.
"""

from __future__ import annotations

from genesis.datasets.digits import digits
from genesis.datasets.from_sklearn import breast_cancer, diabetes, iris, linnerud, wine
from genesis.datasets.image_folder import ImageFolder, read_image

__all__ = ["ImageFolder", "breast_cancer", "diabetes", "digits", "iris", "linnerud", "read_image", "wine"]
