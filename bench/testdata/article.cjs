// Makes markdown of the articles of pages with jsdom, Readability and turndown,
// again and again, and prints what that took after the first time.
const fs = require("fs"), path = require("path");
const peers = require("module").createRequire(path.resolve(process.argv[2], "package.json"));
const { JSDOM } = peers("jsdom"), { Readability } = peers("@mozilla/readability"), Turndown = peers("turndown");

const dir = process.argv[3], rounds = Number(process.argv[4]);
const pages = fs.readdirSync(dir).filter((f) => f.endsWith(".html")).map((f) => fs.readFileSync(path.join(dir, f)));
const turndown = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced" });

let bytes, text, used, began;
for (let round = 0; round <= rounds; round++) {
  if (round <= 1) {
    bytes = text = 0;
    used = process.cpuUsage();
    began = process.hrtime.bigint();
  }
  for (const page of pages) {
    const dom = new JSDOM(page, { url: "https://example.com/page", contentType: "text/html; charset=utf-8" });
    const article = new Readability(dom.window.document).parse();
    text += turndown.turndown(article ? article.content : dom.window.document.body.innerHTML).length;
    bytes += page.length;
    dom.window.close();
  }
}
const cpu = process.cpuUsage(used);
console.log(JSON.stringify({ cpu_us: cpu.user + cpu.system, took_us: Number(process.hrtime.bigint() - began) / 1e3, bytes, text }));
