"""Pages in a headless Chromium: what their document, layout and pixels are.

Pages have no scripts and forbid them, so a page that is looked at is put, as it is, into a frame of another page whose
script measures it. A frame may be narrower than the least window of a browser, and its media queries follow it.
"""

import html
import json
import re
import struct
import subprocess
import zlib

CHROMIUM = "chromium"
# No sandbox: it needs privileges that containers do not have, and the pages are our own.
OPTIONS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
    # Whatever would leave this machine fails; the name of the error would be in the console.
    "--host-resolver-rules=MAP * ~NOTFOUND", "--proxy-server=127.0.0.1:9", "--virtual-time-budget=5000",
]

FRAME = """<!DOCTYPE html><html><head><meta charset="utf-8"><style>body{margin:0}iframe{border:0;display:block}</style>
</head><body><iframe id="frame" width="WIDTH" height="HEIGHT" srcdoc="PAGE"></iframe><pre id="seen">nothing</pre>
<script>
document.getElementById("frame").onload = function () {
  const page = this.contentDocument, root = page.documentElement, seen = {};
  seen.overflow = root.scrollWidth - root.clientWidth;
  seen.wide = [...page.querySelectorAll("body *")].filter(e => !e.closest(".scroll > *") && !e.closest("svg > *"))
    .filter(e => e.getBoundingClientRect().right > root.clientWidth + 0.5)
    .map(e => e.tagName + "." + e.className).slice(0, 5);
  // Words of a picture outside of it, and the size in which they appear.
  const texts = [...page.querySelectorAll("svg text")];
  seen.outside = texts.filter(t => { const b = t.getBoundingClientRect(), s = t.closest("svg").getBoundingClientRect();
    return b.left < s.left - 1 || b.right > s.right + 1 || b.bottom > s.bottom + 1; }).map(t => t.textContent);
  seen.letters = Math.min(99, ...texts.map(t => parseFloat(getComputedStyle(t).fontSize) *
    t.closest("svg").getBoundingClientRect().width / t.closest("svg").viewBox.baseVal.width));
  seen.svgs = page.querySelectorAll("svg").length;
  seen.hidden = [...page.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height < 50).map(s => s.id);
  seen.height = root.scrollHeight;
  document.getElementById("seen").textContent = JSON.stringify(seen);
};
</script></body></html>"""


class Browser:
    def __init__(self, folder):
        self.folder = folder

    def _run(self, *arguments):
        done = subprocess.run([CHROMIUM, *OPTIONS, f"--user-data-dir={self.folder / 'profile'}", *arguments],
                              capture_output=True, timeout=120, check=True)
        # The page's own words and complaints; the browser's about a machine without a desktop are not ours.
        console = re.findall(r"CONSOLE[^\n]*", done.stderr.decode(errors="replace"))
        return done.stdout.decode(), console

    def dom(self, page):
        """The document after parsing, as text, and the lines of the console."""
        return self._run("--dump-dom", page.as_uri())

    def frame(self, page, width, height):
        framed = self.folder / f"{page.stem}-{width}.html"
        text = FRAME.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
        framed.write_text(text.replace("PAGE", html.escape(page.read_text(encoding="utf-8"))), encoding="utf-8")
        return framed

    def measure(self, page, width):
        """What FRAME's script saw at this width, as a dictionary."""
        document, console = self._run("--dump-dom", self.frame(page, width, 900).as_uri())
        seen = html.unescape(re.search(r'<pre id="seen">(.*?)</pre>', document, re.S)[1])
        return json.loads(seen), console

    def screenshot(self, page, width, height, path, dark=False):
        window = f"--window-size={max(width, 600)},{height}"
        scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        self._run(f"--screenshot={path}", window, *scheme, self.frame(page, width, height).as_uri())
        return Picture(path)


class Picture:
    """An 8-bit PNG without interlacing, as browsers write it."""

    def __init__(self, path):
        data = path.read_bytes()
        at, packed = 8, b""
        while at < len(data):
            length, kind = struct.unpack_from(">I4s", data, at)
            chunk = data[at + 8 : at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunk)
                if depth != 8 or colour not in (2, 6) or interlaced:
                    raise ValueError(f"{path}: not a PNG of the expected kind")
                self.channels = 3 if colour == 2 else 4
            if kind == b"IDAT":
                packed += chunk
            at += 12 + length
        self.rows = self._unfilter(zlib.decompress(packed))

    def _unfilter(self, raw):
        stride, channels = self.width * self.channels, self.channels
        rows, above = [], bytearray(stride)
        for y in range(self.height):
            start = y * (stride + 1)
            kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
            for i in range(stride if kind else 0):
                left = row[i - channels] if i >= channels else 0
                up = above[i]
                if kind == 1:
                    guess = left
                elif kind == 2:
                    guess = up
                elif kind == 3:
                    guess = (left + up) // 2
                else:
                    corner = above[i - channels] if i >= channels else 0
                    near = left + up - corner
                    guess = min((left, up, corner), key=lambda value: abs(near - value))
                row[i] = (row[i] + guess) & 255
            rows.append(row)
            above = row
        return rows

    def pixel(self, x, y):
        at = x * self.channels
        return tuple(self.rows[y][at : at + 3])

    def colours(self, width, step=3):
        """How often each colour occurs in the left `width` columns, on a grid."""
        counts = {}
        for y in range(0, self.height, step):
            for x in range(0, min(width, self.width), step):
                colour = self.pixel(x, y)
                counts[colour] = counts.get(colour, 0) + 1
        return counts
