"""Models of ultralytics, and its training."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from tools import add, data, fill, fn
from ultralytics import YOLO
from ultralytics.nn import tasks

MODELS = {
    "DetectionModel": ["yolov5n.yaml", "yolov8n.yaml", "yolov10n.yaml", "yolo11n.yaml", "yolo12n.yaml"],
    "SegmentationModel": ["yolov8n-seg.yaml", "yolo11n-seg.yaml"],
    "PoseModel": ["yolov8n-pose.yaml"],
    "OBBModel": ["yolov8n-obb.yaml"],
}
for kind, names in MODELS.items():
    for name in names:
        add(f"ultralytics_{name}", lambda kind=kind, name=name: (
            getattr(tasks, kind)(name, verbose=False), (data(1, 3, 64, 64),)))  # fmt: skip
add("ultralytics_cls", lambda: (tasks.ClassificationModel("yolov8n-cls.yaml", verbose=False), (data(1, 3, 64, 64),)))


def trained() -> list[torch.Tensor]:
    import cv2

    with TemporaryDirectory() as folder:
        images, labels = Path(folder, "images"), Path(folder, "labels")
        images.mkdir()
        labels.mkdir()
        for i in range(4):
            picture = np.full((64, 64, 3), 20 * i, np.uint8)
            picture[8 * i : 8 * i + 16, 24:40] = 255
            cv2.imwrite(str(images / f"{i}.png"), picture)
            (labels / f"{i}.txt").write_text(f"0 0.5 {(8 * i + 8) / 64} 0.25 0.25\n")
        Path(folder, "d.yaml").write_text(f"path: {folder}\ntrain: images\nval: images\nnames:\n  0: box\n")
        model = YOLO("yolov8n.yaml", verbose=False)
        model.add_callback("on_pretrain_routine_end", lambda trainer: fill(trainer.model))
        plain = dict.fromkeys(("mosaic", "hsv_h", "hsv_s", "hsv_v", "fliplr", "translate", "scale", "erasing"), 0.0)
        model.train(data=f"{folder}/d.yaml", epochs=1, imgsz=64, batch=4, workers=0, device="cpu", project=folder, exist_ok=True,
                    verbose=False, plots=False, amp=False, optimizer="SGD", auto_augment=None, **plain)  # fmt: skip
        return [p.detach().clone() for p in model.trainer.model.parameters()]


fn("ultralytics_train", trained)
