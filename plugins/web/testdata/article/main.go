// Command article makes markdown of the articles of pages, as web_fetch does,
// without the plugin around it: the benchmarks compare it with another program.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/toolhost/toolhost/plugins/web/internal/page"
)

// measured is what the program prints.
type measured struct {
	CPU   float64 `json:"cpu_us"`
	Took  float64 `json:"took_us"`
	Bytes int     `json:"bytes"`
	Text  int     `json:"text"`
}

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run converts the pages of a directory again and again, and prints what that took
// after the first time.
func run(dir, rounds string) error {
	n, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil {
		return err
	}
	var pages [][]byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pages = append(pages, text)
	}
	var m measured
	began, used := time.Now(), cpu()
	for round := range n + 1 {
		if round == 1 {
			m, began, used = measured{}, time.Now(), cpu()
		}
		for _, text := range pages {
			d, err := page.Convert(page.Request{Body: text, ContentType: "text/html; charset=utf-8", URL: "https://example.com/page", Format: page.Markdown})
			if err != nil {
				return err
			}
			m.Bytes += len(text)
			m.Text += len(d.Text)
		}
	}
	m.CPU, m.Took = float64((cpu() - used).Microseconds()), float64(time.Since(began).Microseconds())
	return json.NewEncoder(os.Stdout).Encode(m)
}

// cpu is the processor time of the program so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
