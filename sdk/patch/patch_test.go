package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolhost/toolhost/sdk/patch"
)

func ExampleParse() {
	files, err := patch.Parse("*** Begin Patch\n*** Update File: a.go\n@@ func main() {\n-\told()\n+\tnew()\n*** Delete File: b.go\n*** End Patch\n")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		fmt.Println(f.Operation, f.Old, len(f.Hunks))
	}
	fmt.Println(patch.Paths(files))
	// Output:
	// update a.go 1
	// delete b.go 0
	// [a.go b.go]
}

// text is a file of a patch on some lines: its operation, names and mode, and
// then its hunks.
func text(files []patch.File) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%d %s %q %q %o\n", f.Line, f.Operation, f.Old, f.New, f.Mode)
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, "@%d:%d%q%s", h.Line, h.Start, h.Within, map[bool]string{true: "$"}[h.AtEnd])
			for _, l := range h.Lines {
				fmt.Fprintf(&b, " %c%s%s", l.Kind, l.Text, map[bool]string{true: "!"}[l.Open])
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	const head = "diff --git a/a b/a\n--- a/a\n+++ b/a\n"
	for _, tt := range []struct{ name, in, want string }{
		{"git", head + "@@ -1,2 +1,2 @@ func x\n a\n-b\n+c\n", "1 update \"a\" \"a\" 0\n@4:1[]  a -b +c\n"},
		{"plain", "--- a\t2024-01-01\n+++ a\t2024-01-02\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"a\" \"a\" 0\n@3:1[] -b +c\n"},
		{"between files", "From me\n\n" + head + "@@ -1 +1 @@\n-b\n+c\n-- \n2.39.0\n\nIndex: b\n====\n--- b\n+++ b\n@@ -1 +1 @@\n-b\n+c\n", "3 update \"a\" \"a\" 0\n@6:1[] -b +c\n14 update \"b\" \"b\" 0\n@16:1[] -b +c\n"},
		{"removed line like a name", head + "@@ -1,2 +1,2 @@\n--- x\n+++ y\n a\n", "1 update \"a\" \"a\" 0\n@4:1[] --- x +++ y  a\n"},
		{"counts too large", head + "@@ -1,9 +1,9 @@\n-b\n+c\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"a\" \"a\" 0\n@4:1[] -b +c\n7 update \"b\" \"b\" 0\n@9:1[] -b +c\n"},
		{"counts too small", head + "@@ -1 +1 @@\n-b\n-b\n+c\n+c\n", "1 update \"a\" \"a\" 0\n@4:1[] -b -b +c +c\n"},
		{"insertion", head + "@@ -3,0 +4 @@\n+c\n", "1 update \"a\" \"a\" 0\n@4:4[] +c\n"},
		{"lost spaces", head + "@@ -1,4 +1,3 @@\n a\n\n-b\n\n\n\n", "1 update \"a\" \"a\" 0\n@4:1[]  a   -b  \n"},
		{"no line end", head + "@@ -1 +1 @@\n-b\n\\ No newline at end of file\n+c\n\\ Kein Zeilenumbruch\n", "1 update \"a\" \"a\" 0\n@4:1[] -b! +c!\n"},
		{"no numbers", head + "@@ ... @@\n-b\n+c\n@@ f() {\n-b\n+c\n", "1 update \"a\" \"a\" 0\n@4:0[] -b +c\n@7:0[\"f() {\"] -b +c\n"},
		{"created", "diff --git a/a b/a\nnew file mode 100755\nindex 0..1\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+c\n", "1 create \"\" \"a\" 755\n@6:1[] +c\n"},
		{"created empty", "diff --git a/a b/a\nnew file mode 100644\nindex 0..1\n", "1 create \"\" \"a\" 644\n"},
		{"created, plain", "--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+c\n", "1 create \"\" \"a\" 0\n@3:1[] +c\n"},
		{"deleted", "diff --git i/a w/a\ndeleted file mode 100644\n--- i/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n", "1 delete \"a\" \"\" 0\n@5:1[] -c\n"},
		{"renamed", "diff --git a/a b c b/d\nsimilarity index 90%\nrename from a b c\nrename to d\n", "1 rename \"a b c\" \"d\" 0\n"},
		{"mode", "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", "1 update \"a\" \"a\" 755\n"},
		{"without prefixes", "diff --git d/a d/a\n--- d/a\n+++ d/a\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"d/a\" \"d/a\" 0\n@4:1[] -b +c\n"},
		{"spaces in names", "diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"x y\" \"x y\" 0\n@4:1[] -b +c\n"},
		{"quoted names", "diff --git \"a/\\303\\251\\t\\\"\" \"b/\\303\\251\\t\\\"\"\n--- \"a/\\303\\251\\t\\\"\"\n+++ \"b/\\303\\251\\t\\\"\"\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"é\\t\\\"\" \"é\\t\\\"\" 0\n@4:1[] -b +c\n"},
		{"two names", "--- a/old\n+++ b/new\n@@ -1 +1 @@\n-b\n+c\n", "1 update \"old\" \"new\" 0\n@3:1[] -b +c\n"},
		{"carriage returns in the file", head + "@@ -1 +1 @@\n-b\r\n+c\r\n", "1 update \"a\" \"a\" 0\n@4:1[] -b\r +c\r\n"},
		{"carriage returns everywhere", strings.ReplaceAll(head+"@@ -1 +1 @@\n-b\n+c\n", "\n", "\r\n"), "1 update \"a\" \"a\" 0\n@4:1[] -b +c\n"},
		{"in a block", "\n```diff\n" + head + "@@ -1,5 +1 @@\n-b\n+c\n```\nmore\n", "3 update \"a\" \"a\" 0\n@6:1[] -b +c\n"},

		{
			"begin patch", "*** Begin Patch\n*** Update File: a b\n*** Move to: d\n@@ class X\n@@ def f():\n a\n\n-b\n+c\n@@\n+e\n*** End of File\n\n*** Add File: n\n+x\n+\n*** Delete File: g\n*** End Patch\n\n",
			"2 rename \"a b\" \"d\" 0\n@4:0[\"class X\" \"def f():\"]  a   -b +c\n@10:0[]$ +e\n14 create \"\" \"n\" 0\n@15:0[] +x +\n17 delete \"g\" \"\" 0\n",
		},
		{"no @@", "*** Begin Patch\n*** Update File: a\n-b\n+c\n*** End Patch", "2 update \"a\" \"a\" 0\n@3:0[] -b +c\n"},
		{"numbers after all", "*** Begin Patch\n*** Update File: a\n@@ -7,1 +7,1 @@\n-b\n+c\n*** End Patch", "2 update \"a\" \"a\" 0\n@3:7[] -b +c\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, err := patch.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, text(files)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "--- a/a\n+++ b/a\n"
	many := func(n int, part string) string { return strings.Repeat(part, n) }
	for _, tt := range []struct{ name, in, want string }{
		{"empty", " \n\n", "invalid_argument: The patch is empty"},
		{"only a block", "```\n```\n", "invalid_argument: The patch is empty"},
		{"prose", "change it\nplease", "invalid_argument: Line 1 of the patch: found change it, and nowhere the names of a file"},
		{"no names", "\n@@ -1 +1 @@\n-a\n+b\n", `invalid_argument: Line 2 of the patch: found @@ -1 +1 @@, expected the names of the file before it, as "--- a/file" and "+++ b/file"`},
		{"no hunk", head + "-a\n+b\n", "invalid_argument: Line 3 of the patch: found -a, expected a hunk, which begins with @@"},
		{"cut off", head, "invalid_argument: Line 3 of the patch: found its end, expected a hunk, which begins with @@"},
		{"hunk cut off", head + "@@ -1 +1 @@\n", "invalid_argument: Line 4 of the patch: found its end, expected the lines of the hunk, each with a space, - or + before it"},
		{"lost space", head + "@@ -1,2 +1,2 @@\nfunc a()\n-a\n+b\n", "invalid_argument: Line 4 of the patch: found func a(), expected the lines of the hunk, each with a space, - or + before it"},
		{"lost space later", head + "@@ -1,2 +1,2 @@\n-a\n+b\nfunc a()\n", "invalid_argument: Line 6 of the patch: found func a(), expected a line that begins with a space, - or +, or the next hunk or file"},
		{"no line end inside", head + "@@ -1,2 +1,1 @@\n-a\n\\ No newline at end of file\n-b\n", "invalid_argument: Line 3 of the patch: a line of the hunk that has no line end is not the last"},
		{"no line end of nothing", head + "@@ -1,2 +1,1 @@\n\\ No newline at end of file\n-b\n", `invalid_argument: Line 4 of the patch: found "\\ No newline at end of file", expected a line of the file before it`},
		{"nothing at all", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", "invalid_argument: Line 1 of the patch: no name of a file"},
		{"no name", "--- \n+++ b\n@@ -1 +1 @@\n-a\n", "invalid_argument: Line 1 of the patch: found --- , expected the name of a file"},
		{"wrong quotes", "--- \"a\\9\"\n+++ b\n@@ -1 +1 @@\n-a\n", `invalid_argument: Line 1 of the patch: found "--- \"a\\9\"", which is not quoted as in C`},
		{"other name", "diff --git a/a b/a\n--- a/b\n+++ b/a\n@@ -1 +1 @@\n-a\n", `invalid_argument: Line 2 of the patch: the name "b" is not that of the lines before, "a"`},
		{"half a rename", "diff --git a/a b/b\nrename to b\n", "invalid_argument: Line 1 of the patch: the names of the file are not clear"},
		{"half a header", "diff --git \nrename from a", "invalid_argument: Line 1 of the patch: the names of the file are not clear"},
		{"copied", "diff --git a/a b/d\ncopy from a\ncopy to d\n--- a/a\n+++ b/d\n@@ -1 +1 @@\n-b\n+c\n", "invalid_argument: Line 2 of the patch: found copy from a, a copy, which a patch cannot make; use copy_file, or a diff without copies (no -C)"},
		{"link", "diff --git a/a b/a\nnew file mode 120000\n", "invalid_argument: Line 2 of the patch: found new file mode 120000, expected the mode of a file, 100644 or 100755; links and submodules cannot be patched"},
		{"changed link", "diff --git a/a b/a\nindex 1..2 120000\n", "invalid_argument: Line 2 of the patch: found index 1..2 120000, expected the mode of a file, 100644 or 100755; links and submodules cannot be patched"},
		{"no mode", "diff --git a/a b/a\nold mode x\n", "invalid_argument: Line 2 of the patch: found old mode x, expected a mode such as 100644"},
		{"binary", "diff --git a/a b/a\nindex 1..2 100644\nGIT binary patch\n", "invalid_argument: Line 3 of the patch: found GIT binary patch, expected text; use copy_file or move_file for a binary file"},
		{"binary, plain", "Binary files a and b differ\n", "invalid_argument: Line 1 of the patch: found Binary files a and b differ, expected text; use copy_file or move_file for a binary file"},
		{"merge", "diff --cc a\n", "invalid_argument: Line 1 of the patch: found diff --cc a, a diff of a merge, which cannot be applied; expected a diff to one parent"},
		{"merge hunk", head + "@@@ -1 -1 +1 @@@\n", "invalid_argument: Line 3 of the patch: found @@@ -1 -1 +1 @@@, a diff of a merge, which cannot be applied; expected a diff to one parent"},
		{"context diff", "*** a\n--- b\n", "invalid_argument: Line 1 of the patch: found *** a, a context diff; expected a unified one, as of diff -u"},
		{"both forms", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n*** Begin Patch\n*** Delete File: y\n*** End Patch\n", "invalid_argument: Line 6 of the patch: found *** Begin Patch, after a unified diff; expected one form or the other"},
		{"no begin", "*** Add File: a\n+x\n", `invalid_argument: Line 1 of the patch: found *** Add File: a, expected "*** Begin Patch" before it`},
		{"no end", "*** Begin Patch\n*** Add File: a\n+x\n", `invalid_argument: Line 4 of the patch: found its end, expected "*** End Patch": the patch seems to be cut off`},
		{"after the end", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nx", `invalid_argument: Line 5 of the patch: found x, expected nothing after "*** End Patch"`},
		{"nothing in it", "*** Begin Patch\n*** End Patch\n", "invalid_argument: The patch is empty"},
		{"nothing changes", "*** Begin Patch\n*** Update File: a\n*** End Patch\n", "invalid_argument: Line 2 of the patch: the patch says nothing about a; expected changed lines after it"},
		{"no file", "*** Begin Patch\n*** Add File: \n*** End Patch\n", `invalid_argument: Line 2 of the patch: found *** Add File: , expected "*** Add File: ", "*** Update File: " or "*** Delete File: " with the name of a file, or "*** End Patch"`},
		{"other words", "*** Begin Patch\n*** Rename File: a\n*** End Patch\n", `invalid_argument: Line 2 of the patch: found *** Rename File: a, expected "*** Add File: ", "*** Update File: " or "*** Delete File: " with the name of a file, or "*** End Patch"`},
		{"line without +", "*** Begin Patch\n*** Add File: a\nx\n*** End Patch\n", "invalid_argument: Line 3 of the patch: found x, expected a line that begins with +"},
		{"line without space", "*** Begin Patch\n*** Update File: a\n@@\nx\n*** End Patch\n", "invalid_argument: Line 4 of the patch: found x, expected a line that begins with a space, - or +, or with @@"},
		{"chunk without lines", "*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch\n", "invalid_argument: Line 4 of the patch: found *** End Patch, expected the lines of the hunk, each with a space, - or + before it"},
		{"too long", many(patch.MaxBytes+1, "x"), "resource_exhausted: The patch has 4194305 bytes, the maximum is 4194304"},
		{"too many files", "*** Begin Patch\n" + many(patch.MaxFiles+1, "*** Delete File: a\n") + "*** End Patch\n", "resource_exhausted: The patch changes more than 100 files"},
		{"too many hunks", head + many(patch.MaxHunks+1, "@@ -1 +1 @@\n-a\n+b\n"), "resource_exhausted: The patch has more than 2000 hunks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files, err := patch.Parse(tt.in)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Parse = %v, %v, want %q", files, err, tt.want)
			}
		})
	}
}

// Whatever is read has names, and hunks with lines.
func FuzzParse(f *testing.F) {
	f.Add("diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1,2 +1,2 @@ f\n a\n-b\n\\ No newline\n+c\n-- \n2\n")
	f.Add("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@ x\n a\n-b\n+c\n*** End of File\n*** Add File: c\n+x\n*** Delete File: d\n*** End Patch\n")
	f.Add("```\n--- \"a\\303\\251\"\t1\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\r\n```")
	f.Fuzz(func(t *testing.T, in string) {
		files, err := patch.Parse(in)
		if err != nil {
			return
		}
		if len(files) == 0 || len(files) > patch.MaxFiles {
			t.Errorf("there are %d files", len(files))
		}
		for _, file := range files {
			if (file.Old == "") != (file.Operation == patch.Create) || (file.New == "") != (file.Operation == patch.Delete) {
				t.Errorf("%s names %q and %q", file.Operation, file.Old, file.New)
			}
			for _, h := range file.Hunks {
				if len(h.Lines) == 0 {
					t.Errorf("the hunk at line %d has no lines", h.Line)
				}
			}
		}
	})
}
