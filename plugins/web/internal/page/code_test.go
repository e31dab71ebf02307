package page_test

import (
	"strings"
	"testing"
)

func TestCodeLanguages(t *testing.T) {
	prose := strings.Repeat("<p>Boats are old, and people have always built them, of wood, of skins, and of reed.</p>", 6)
	for _, tt := range []struct{ in, want string }{
		{`<pre><code class="hljs language-go">x</code></pre>`, "go"},
		{`<pre class="prettyprint lang-java">x</pre>`, "java"},
		{`<div class="highlight highlight-source-go"><pre>x</pre></div>`, "go"},
		{`<div class="highlight-python notranslate"><div class=highlight><pre><span></span>x</pre></div></div>`, "python"},
		{`<pre class="brush: js; toolbar: false">x</pre>`, "js"},
		{`<pre class="brush:js">x</pre>`, "js"},
		{`<div class=sourceCode><pre class="sourceCode haskell"><code class="sourceCode haskell">x</code></pre></div>`, "haskell"},
		{`<pre data-lang=Rust>x</pre>`, "rust"},
		{`<pre><code data-language=c++>x</code></pre>`, "c++"},
		{`<figure class=language-ruby><pre>x</pre></figure>`, "ruby"},
		{`<pre class=language-text>x</pre>`, ""},
		{`<pre lang=en class="slang-x">x</pre>`, ""},
		{`<pre class="language-">x</pre>`, ""},
		{"<pre class='language-c`\u202e'>x</pre>", ""},
		{`<pre class="language-` + strings.Repeat("x", 31) + `">x</pre>`, ""},
		{`<pre class="` + strings.Repeat("y ", 200) + `language-go">x</pre>`, ""},
		{`<pre>x</pre>`, ""},
		{`<table><tr><td class=gutter><pre>1</pre></td><td class=code><div class=highlight-go><pre>x</pre></div></td></tr></table>`, "go"},
	} {
		want := "```" + tt.want + "\nx\n```\n"
		if got := inMarkdown(t, tt.in, true); got != want {
			t.Errorf("%s becomes %q, want %q", tt.in, got, want)
		}
		if got := inMarkdown(t, "<article>"+prose+tt.in+prose+"</article>", false); !strings.Contains(got, want) {
			t.Errorf("%s in an article becomes %q, want %q", tt.in, got, want)
		}
	}
}
