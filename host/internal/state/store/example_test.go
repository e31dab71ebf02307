package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/toolhost/toolhost/host/internal/state/store"
)

// A process takes the state directory, opens the database in it, and writes.
func ExampleStore_Do() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	lock, err := store.Lock(dir)
	if held, ok := errors.AsType[*store.HeldError](err); ok {
		fmt.Fprintln(os.Stdout, "another host runs, process", held.PID)
		return
	}
	if err != nil {
		panic(err)
	}
	defer lock.Close()
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	err = s.Do(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE note (text TEXT) STRICT; INSERT INTO note VALUES ('kept')")
		return err
	})
	if err != nil {
		panic(err)
	}
	var text string
	err = s.Read().QueryRowContext(ctx, "SELECT text FROM note").Scan(&text)
	fmt.Fprintln(os.Stdout, text, err)
	// Output: kept <nil>
}
