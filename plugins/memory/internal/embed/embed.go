// Package embed turns texts into vectors, so that texts that are alike are near
// each other: without a model in this process, or by a server that speaks the
// protocol of Ollama or that of OpenAI. Whatever a server answers, a vector that
// comes out of this package has the length 1, and only numbers in it.
package embed

import (
	"context"
	"errors"
)

// Embedder turns texts into vectors. Its methods may be called concurrently.
type Embedder interface {
	// Name says which embedder, and which model, made a vector: vectors of
	// different names are not comparable.
	Name() string
	// Label is Name without an address, to be shown.
	Label() string
	// Embed returns a vector for each text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// ErrRefused says that a server does not embed at least one of the texts, as they
// are; it may embed others.
var ErrRefused = errors.New("the text is refused")

// ErrNoKey says that a server was not asked, since there is no key for it now.
var ErrNoKey = errors.New("there is no key for the embedder")

// Batch is how many texts are best embedded at a time.
const Batch = 32
