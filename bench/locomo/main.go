// Command locomo measures how well notes are found again, with questions about long
// conversations, from a file in the form of the LoCoMo data set. The user provides the file,
// since its license forbids shipping it. Each turn of a conversation is a note, and each
// question a search for the notes that the data set names. The command starts toolhost with the
// memory plugin as in config.hcl, one host for each conversation, and calls memory_save and
// memory_search only.
//
//	go run ./bench/locomo -data FILE   prints vector, keyword and hybrid search
//	go run ./bench/locomo -serve       answers add and search, as JSON lines
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	data := flag.String("data", os.Getenv("TOOLHOST_LOCOMO"), "conversations and questions, .jsonl or .jsonl.gz; default $TOOLHOST_LOCOMO")
	serve := flag.Bool("serve", false, "answer requests on standard input instead")
	mode := flag.String("mode", "hybrid", "how -serve searches: hybrid, vector or keyword")
	bin := flag.String("bin", "bin", "where toolhost and plugins/memory are")
	config := flag.String("config", "config.hcl", "where the plugin's block is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, *serve, *mode, *bin, *config); err != nil {
		fmt.Fprintln(os.Stderr, "locomo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, serve bool, mode, bin, config string) (err error) {
	if !serve && data == "" {
		return errors.New("no data: name a file with -data, or in $TOOLHOST_LOCOMO")
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "locomo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	block, err := memoryBlock(config)
	if err != nil {
		return err
	}
	h := &hosts{dir: dir, bin: bin, block: block, users: map[string]*user{}}
	defer func() { err = errors.Join(err, h.close()) }()
	if serve {
		return answer(ctx, h, mode, os.Stdin, os.Stdout)
	}
	conversations, err := read(data)
	if err != nil {
		return err
	}
	return measure(ctx, h, conversations, os.Stdout)
}
