#include "nibble/report/page_style.h"

namespace nibble {
namespace {

// Every colour that carries a line or an area has a contrast of 3 against what lies behind it, every text one of 4.5,
// in both schemes. Colours 1 to 5 are for series; w1 to w6 are kinds of weights, shades of one hue, since they are
// parts of one thing.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--page:#f4f6f8;--surface:#fff;--text:#1a2129;--soft:#55606c;--grid:#dde2e8;--edge:#cfd6de;
--on:#fff;--good:#19703c;--bad:#b3261e;--good-soft:#e3f3e8;--bad-soft:#fbe6e4;--mark:#eaf1fa;
--c1:#1f5fa8;--c2:#b3530c;--c3:#1b7a43;--c4:#7a4bb0;--c5:#b0306a;--cache:#b3530c;--act:#1b7a43;--work:#0f7480;--comm:#7a4bb0;
--graph:#7a6a00;--free:#8a96a3;--w1:#1f5fa8;--w2:#4b87c9;--w3:#2a4580;--w4:#6f8fc8;--w5:#3a6ea5;--w6:#5a6fae}
@media screen and (prefers-color-scheme:dark){:root{--page:#0d1117;--surface:#161b22;--text:#e6edf3;--soft:#a3afbb;--grid:#2b333d;
--edge:#38424e;--on:#0d1117;--good:#5cc48a;--bad:#ff8a80;--good-soft:#12301f;--bad-soft:#3a1a18;--mark:#1c2a3c;
--c1:#6cb0f5;--c2:#f0a05a;--c3:#5cc48a;--c4:#b79af0;--c5:#f08ab8;--cache:#f0a05a;--act:#5cc48a;--work:#4fc4d0;--comm:#b79af0;
--graph:#d0c060;--free:#7c8894;--w1:#6cb0f5;--w2:#4d86c6;--w3:#a4c8f0;--w4:#8097c8;--w5:#88bde8;--w6:#95a5e0}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",
"Liberation Sans",sans-serif}
main{max-width:1200px;margin:0 auto;padding:24px 16px 48px}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:0 0 12px}
h3{font-size:1rem;margin:0 0 8px}
p{margin:0 0 12px;max-width:80ch;overflow-wrap:anywhere}
ul{margin:0 0 12px;padding-left:1.3em}
li{margin:0 0 6px;max-width:80ch;overflow-wrap:anywhere}
.lead{color:var(--soft);margin-bottom:16px}
.verdict{display:inline-block;margin:0 0 16px;padding:6px 14px;border-radius:8px;font-weight:600;border:1px solid currentColor}
.yes{color:var(--good);background:var(--good-soft)}
.no{color:var(--bad);background:var(--bad-soft)}
section{background:var(--surface);border:1px solid var(--edge);border-radius:10px;padding:18px 18px 10px;margin:0 0 18px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 18px}
.tiles div{background:var(--surface);border:1px solid var(--edge);border-radius:10px;padding:10px 14px}
.tiles dt{color:var(--soft);font-size:.85rem}
.tiles dd{margin:0;font-size:1.2rem;font-weight:600;overflow-wrap:anywhere}
.asked{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:8px 18px;margin:0 0 12px}
.asked dt{color:var(--soft);font-size:.85rem}
.asked dd{margin:0;overflow-wrap:anywhere}
.beside{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:8px 28px;align-items:start}
figure{margin:0 0 16px;min-width:0}
figcaption{color:var(--soft);font-size:.875rem;max-width:70ch}
svg{display:block;width:100%;max-width:600px;height:auto}
.scroll{overflow-x:auto;margin:0 0 16px;min-width:0}
.scroll:focus-visible{outline:2px solid var(--c1);outline-offset:2px}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;min-width:min(100%,420px)}
caption{text-align:left;color:var(--soft);font-size:.875rem;padding:0 0 6px}
th,td{text-align:left;padding:5px 12px 5px 0;border-bottom:1px solid var(--grid);vertical-align:top;font-weight:400}
thead th{color:var(--soft);font-size:.82rem;vertical-align:bottom;border-bottom-color:var(--edge)}
th.num,td.num{text-align:right;white-space:nowrap}
.marked th,.marked td{background:var(--mark);font-weight:600}
thead th.num{white-space:normal}tbody th{padding-left:6px;min-width:6em}thead th:first-child{padding-left:6px}
.long{min-width:16em}.some{min-width:8.5em}
.swatch{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.5em}
text{font-size:13.5px;fill:var(--text)}
.tick,.legend,.name{fill:var(--soft)}
.label,.value,.name{paint-order:stroke;stroke:var(--surface);stroke-width:4px;stroke-linejoin:round}
.mid{text-anchor:middle}.end{text-anchor:end}
.inside{fill:var(--on)}
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.limit{stroke:var(--text);stroke-width:1.6;stroke-dasharray:5 3}
.line{fill:none;stroke-width:2;stroke-linejoin:round}
.band{opacity:.2}
.scales{fill:var(--c2);background:var(--c2)}
.ring{fill:none;stroke:var(--text);stroke-width:1.8}
.part{stroke:var(--surface);stroke-width:.6}
.over{stroke:var(--bad);stroke-width:1.5}.hatch{fill:var(--bad)}
.fill1{fill:var(--c1)}.fill2{fill:var(--c2)}.fill3{fill:var(--c3)}.fill4{fill:var(--c4)}.fill5{fill:var(--c5)}
.stroke1{stroke:var(--c1)}.stroke2{stroke:var(--c2)}.stroke3{stroke:var(--c3)}.stroke4{stroke:var(--c4)}
.stroke5{stroke:var(--c5)}
.w1{fill:var(--w1);background:var(--w1)}.w2{fill:var(--w2);background:var(--w2)}.w3{fill:var(--w3);background:var(--w3)}
.w4{fill:var(--w4);background:var(--w4)}.w5{fill:var(--w5);background:var(--w5)}.w6{fill:var(--w6);background:var(--w6)}
.cache{fill:var(--cache);background:var(--cache)}.act{fill:var(--act);background:var(--act)}
.work{fill:var(--work);background:var(--work)}.comm{fill:var(--comm);background:var(--comm)}
.graph{fill:var(--graph);background:var(--graph)}
.free{fill:var(--surface);stroke:var(--free);stroke-dasharray:3 2;background:var(--surface);box-shadow:inset 0 0 0 1px var(--free)}
.key{display:flex;flex-wrap:wrap;gap:4px 18px;margin:0 0 12px;padding:0;list-style:none;font-size:.875rem;color:var(--soft)}
@media (min-width:900px){text{font-size:10.5px}tbody th{white-space:nowrap}}
@media (max-width:600px){main{padding:14px 10px 32px}section{padding:14px 12px 8px}h1{font-size:1.4rem}
.tiles{grid-template-columns:1fr 1fr}.tiles dd{font-size:1.05rem}}
@media print{:root{color-scheme:light;--page:#fff;--surface:#fff;--text:#000;--soft:#444;--on:#fff}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
body{font-size:10pt}main{max-width:none;padding:0}
section{border:0;padding:0;margin:0 0 14pt}figure,tr,.tiles div{break-inside:avoid}h2{break-after:avoid}
.scroll{overflow:visible}svg{max-width:11cm}}
)css";

}  // namespace

std::string_view page_style() { return kStyle; }

}  // namespace nibble
