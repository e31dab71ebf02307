package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Each file is one step, NNNN_what.sql, numbered from 1 without gaps. A released step
// never changes; a later change is another step.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a database as the host's: "tlho".
const applicationID = 0x746c686f

// errNewer reports that a newer version made the database.
var errNewer = errors.New("it was written by a newer version of toolhost")

// migration is one step of the schema.
type migration struct {
	name string
	sql  string
}

// readMigrations returns the steps in order; the first has number 1.
func readMigrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var steps []migration
	for _, name := range names { // in order of names
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		if n, err := strconv.Atoi(number); err != nil || n != len(steps)+1 || len(number) != 4 {
			return nil, fmt.Errorf("migration %s: its number should be %04d", name, len(steps)+1)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{name: name, sql: string(text)})
	}
	return steps, nil
}

// migrate applies all missing steps, or none.
func migrate(ctx context.Context, db *sql.DB) error {
	steps, err := readMigrations(migrations)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := applyMigrations(ctx, tx, steps); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func applyMigrations(ctx context.Context, tx *sql.Tx, steps []migration) error {
	version, err := userVersion(ctx, tx)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("%w: its schema is number %d, this program knows %d", errNewer, version, len(steps))
	}
	if version == len(steps) {
		return nil
	}
	for _, m := range steps[version:] {
		if _, err := tx.ExecContext(ctx, m.sql); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
		return err
	}
	return setUserVersion(ctx, tx, len(steps))
}

func userVersion(ctx context.Context, tx *sql.Tx) (int, error) {
	var version int
	err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

func setUserVersion(ctx context.Context, tx *sql.Tx, version int) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}
