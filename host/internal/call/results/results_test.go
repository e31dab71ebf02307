package results_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/toolhost/toolhost/host/internal/call/results"
	"github.com/toolhost/toolhost/sdk/tool"
)

// handle returns the id of the n-th call of a test.
func handle(n byte) string {
	return "tc_01890a5d-ac96-774b-bcce-b302099a80" + string([]byte{'a' + n/10, '0' + n%10})
}

func open(tb testing.TB, opts results.Options) *results.Dir {
	tb.Helper()
	d, err := results.Open(opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	return d
}

// keep keeps a text as the result of a call.
func keep(tb testing.TB, d *results.Dir, user, handle, text string) {
	tb.Helper()
	w, err := d.Create(user, handle)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Keep(); err != nil {
		tb.Fatal(err)
	}
}

// read returns the kept part of a result, or "".
func read(tb testing.TB, d *results.Dir, user, handle string) string {
	tb.Helper()
	r, err := d.Find(user, handle)
	if err != nil {
		if tool.AsError(err).Code != tool.NotFound {
			tb.Fatal(err)
		}
		return ""
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// files returns every file below a directory.
func files(tb testing.TB, dir string) []string {
	tb.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return names
}

func TestKeptResultIsReadByItsUserOnly(t *testing.T) {
	d := open(t, results.Options{Path: filepath.Join(t.TempDir(), "results")})
	keep(t, d, "ann", handle(1), "hello")
	keep(t, d, "../bob", handle(2), "a user may be called anything")
	if got := read(t, d, "ann", handle(1)); got != "hello" {
		t.Errorf("the result is %q, want what was kept", got)
	}
	if got := read(t, d, "../bob", handle(2)); got != "a user may be called anything" {
		t.Errorf("the result of ../bob is %q", got)
	}
	_, foreign := d.Find("bob", handle(1))
	_, missing := d.Find("bob", handle(3))
	if foreign == nil || missing == nil || strings.Replace(foreign.Error(), handle(1), handle(3), 1) != missing.Error() {
		t.Errorf("Find of another user's result = %v, of none = %v; want that they cannot be told apart", foreign, missing)
	}
	if e := tool.AsError(missing); e.Code != tool.NotFound || !strings.Contains(e.Message, "1h0m0s") || e.Hint == "" {
		t.Errorf("Find of no result = %v (hint %q), want how long results are kept and what to do", e, e.Hint)
	}
}

// TestNoHandle checks that the error for a handle that is empty can be read.
func TestNoHandle(t *testing.T) {
	_, err := open(t, results.Options{Path: t.TempDir()}).Find("ann", "")
	if want := `there is no result "": whole results`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf(`Find("") = %v, want %q`, err, want)
	}
}

// TestHostileHandles checks that only the id of a call reaches the disk.
func TestHostileHandles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, results.Options{Path: filepath.Join(dir, "results")})
	keep(t, d, "ann", handle(1), "hello")
	for _, h := range []string{
		"", "tc_", "../secret", "../../secret", "/etc/passwd", handle(1) + "\x00", handle(1) + "/..", handle(1) + ".5", handle(1) + "\n",
		strings.ToUpper(handle(1)), "TC_" + handle(1)[3:], handle(1)[3:], strings.Repeat("a", 4096), "tc_" + strings.Repeat("0", 36), "\xff\xfe",
	} {
		_, err := d.Find("ann", h)
		if e := tool.AsError(err); e == nil || e.Code != tool.NotFound || len(e.Message) > 400 || !utf8.ValidString(e.Message) || strings.ContainsAny(e.Message, "\x00\n") {
			t.Errorf("Find(%q) = %v, want %s in words that can be shown", h, e, tool.NotFound)
		}
		if _, err := d.Create("ann", h); err == nil {
			t.Errorf("Create(%q) succeeded", h)
		}
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("the files are %q, want the secret and one result", got)
	}
}

func TestFilesAreForTheHostOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	keep(t, open(t, results.Options{Path: dir}), "ann", handle(1), "hello")
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v, want %v", path, info.Mode().Perm(), want)
		}
		if strings.Contains(path, "ann") {
			t.Errorf("%s names a user", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := open(t, results.Options{Path: dir, TTL: 10 * time.Minute})
		keep(t, d, "ann", handle(1), "old")
		<-time.After(6 * time.Minute)
		keep(t, d, "ann", handle(2), "new")
		<-time.After(4*time.Minute - time.Nanosecond)
		if got := read(t, d, "ann", handle(1)); got != "old" {
			t.Errorf("before its time passes the result is %q", got)
		}
		<-time.After(time.Nanosecond)
		if got := read(t, d, "ann", handle(1)); got != "" {
			t.Errorf("after its time the result is %q, want none", got)
		}
		<-time.After(time.Minute) // by then it was looked for
		synctest.Wait()
		if got := files(t, dir); len(got) != 1 {
			t.Errorf("the files are %q, want the one whose time has not passed", got)
		}
		if got := read(t, d, "ann", handle(2)); got != "new" {
			t.Errorf("the newer result is %q", got)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}

		// The next run continues counting.
		d = open(t, results.Options{Path: dir, TTL: 10 * time.Minute})
		if got := read(t, d, "ann", handle(2)); got != "new" {
			t.Errorf("after a restart the result is %q", got)
		}
		<-time.After(5 * time.Minute)
		if got := read(t, d, "ann", handle(2)); got != "" {
			t.Errorf("after a restart and its time the result is %q, want none", got)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestQuotaDropsTheOldest(t *testing.T) {
	dir := t.TempDir()
	d := open(t, results.Options{Path: dir, Quota: 32 * tool.KiB})
	keep(t, d, "bob", handle(0), strings.Repeat("b", 30_000)) // his is not counted to her
	for n := byte(1); n <= 4; n++ {
		keep(t, d, "ann", handle(n), strings.Repeat("a", 10_000)) // 12 KiB each
	}
	for n, want := range []int{30_000, 0, 0, 10_000, 10_000} {
		user := "ann"
		if n == 0 {
			user = "bob"
		}
		if got := len(read(t, d, user, handle(byte(n)))); got != want {
			t.Errorf("result %d of %s has %d bytes, want %d", n, user, got, want)
		}
	}
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("the files are %q, want 3", got)
	}
	// A smaller quota counts from the next run on.
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, results.Options{Path: dir, Quota: 16 * tool.KiB})
	if older, newer := read(t, d, "ann", handle(3)), read(t, d, "ann", handle(4)); older != "" || len(newer) != 10_000 {
		t.Errorf("with a smaller quota the results have %d and %d bytes, want the newer one only", len(older), len(newer))
	}
}

func TestLongerThanTheQuota(t *testing.T) {
	dir := t.TempDir()
	d := open(t, results.Options{Path: dir, Quota: 8 * tool.KiB})
	keep(t, d, "ann", handle(1), "goes")
	w, err := d.Create("ann", handle(2))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if n, err := w.Write(bytes.Repeat([]byte("x"), 3000)); n != 3000 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if n, err := w.Keep(); n != 8192 || err != nil {
		t.Errorf("Keep = %d, %v; want the 8192 bytes of the quota", n, err)
	}
	for _, when := range []string{"at once", "after a restart"} {
		r, err := d.Find("ann", handle(2))
		if err != nil {
			t.Fatal(err)
		}
		if r.Size != 8192 || r.Whole != 15_000 {
			t.Errorf("%s the result has %d bytes of %d, want 8192 of 15000", when, r.Size, r.Whole)
		}
		_, readErr := r.ReadAt(make([]byte, 1), 8192)
		if err := r.Close(); err != nil || !errors.Is(readErr, io.EOF) {
			t.Errorf("%s behind the head ReadAt = %v, then Close = %v", when, readErr, err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, results.Options{Path: dir, Quota: 8 * tool.KiB})
	}
}

// TestQuotaOfAWriter: a user may have a smaller quota than others, never a larger one.
func TestQuotaOfAWriter(t *testing.T) {
	d := open(t, results.Options{Path: t.TempDir(), Quota: 16 * tool.KiB})
	for n, quota := range []tool.ByteSize{8 * tool.KiB, 64 * tool.KiB} {
		user := fmt.Sprint("user", n)
		keep(t, d, user, handle(1), strings.Repeat("x", 8000))
		w, err := d.Create(user, handle(2))
		if err != nil {
			t.Fatal(err)
		}
		w.Quota = quota
		if _, err := w.Write(make([]byte, 20_000)); err != nil {
			t.Fatal(err)
		}
		want := int64(min(quota, 16*tool.KiB))
		if got, err := w.Keep(); err != nil || got != want {
			t.Errorf("with a quota of %v: Keep = %d, %v, want %d", quota, got, err, want)
		}
		if got := read(t, d, user, handle(1)); got != "" {
			t.Errorf("with a quota of %v: the older result is kept", quota)
		}
	}
}

// TestWritersShareTheQuota checks that unfinished results count too.
func TestWritersShareTheQuota(t *testing.T) {
	d := open(t, results.Options{Path: t.TempDir(), Quota: 8 * tool.KiB})
	first, err := d.Create("ann", handle(1))
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.Create("ann", handle(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*results.Writer{first, second} {
		if _, err := w.Write(make([]byte, 8192)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := second.Keep(); err == nil {
		t.Error("a result without room was kept")
	}
	if n, err := first.Keep(); n != 8192 || err != nil {
		t.Errorf("Keep = %d, %v", n, err)
	}
	keep(t, d, "ann", handle(3), strings.Repeat("x", 8192)) // the room of the second is free again
	if got := read(t, d, "ann", handle(3)); len(got) != 8192 {
		t.Errorf("the next result has %d bytes", len(got))
	}
}

// TestLeftovers opens a directory that holds the remains of a killed host and unrelated files.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	d := open(t, results.Options{Path: dir})
	keep(t, d, "ann", handle(1), "hello")
	if _, err := d.Create("ann", handle(2)); err != nil { // and killed
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(files(t, dir)[0])
	for name, text := range map[string]string{
		handle(3) + ".2":  "more than it says",
		handle(4) + ".x":  "no number",
		handle(5):         "no number",
		handle(6) + ".-1": "",
		"../note":         "not ours",
		"note":            "not ours",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "note"), filepath.Join(folder, handle(7)+".8")); err != nil {
		t.Fatal(err)
	}
	future := filepath.Join(folder, handle(8)+".6")
	if err := os.WriteFile(future, []byte("future"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(future, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	d = open(t, results.Options{Path: dir})
	if got := read(t, d, "ann", handle(1)); got != "hello" {
		t.Errorf("after a restart the result is %q", got)
	}
	for n := byte(2); n <= 8; n++ {
		if got := read(t, d, "ann", handle(n)); got != "" {
			t.Errorf("leftover %d can be read: %q", n, got)
		}
	}
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("the files are %q, want the result and what is not ours", got)
	}
}

// TestWriteErrors checks that a result that cannot be written is not kept and leaves no file.
func TestWriteErrors(t *testing.T) {
	dir := t.TempDir()
	d := open(t, results.Options{Path: dir})
	w, err := d.Create("ann", handle(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create("ann", handle(1)); err == nil {
		t.Error("a result can be written twice at a time")
	}
	if _, err := w.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	w.Discard()
	w.Discard() // once more is nothing
	if _, err := w.Keep(); err == nil {
		t.Error("a discarded result was kept")
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("the files are %q, want none", got)
	}
	keep(t, d, "ann", handle(1), "hello")
	keep(t, d, "ann", handle(1), "again") // the same call, made anew
	if got := read(t, d, "ann", handle(1)); got != "again" {
		t.Errorf("the result is %q, want the later one", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, "ann", handle(1)); got != "" {
		t.Errorf("a result that somebody removed is %q", got)
	}
	if _, err := d.Create("ann", handle(2)); err == nil {
		t.Error("Create in a directory that is gone succeeded")
	}
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []results.Options{{Path: file}, {Path: t.TempDir(), TTL: -1}, {Path: t.TempDir(), Quota: -1}} {
		if d, err := results.Open(opts); err == nil {
			t.Errorf("Open(%+v) succeeded", opts)
			_ = d.Close()
		}
	}
}
