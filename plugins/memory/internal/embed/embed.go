// Package embed turns texts into vectors, so that similar texts are near each
// other. [Local] works in this process without a model. [Remote] asks a server with
// the API of Ollama or of OpenAI. Every vector that this package returns has the
// length 1 and contains no infinity or NaN.
package embed

import (
	"context"
	"errors"
)

// Embedder turns texts into vectors. Its methods are safe for concurrent use.
type Embedder interface {
	// Name identifies the embedder and its model. Vectors of different names are
	// not comparable.
	Name() string
	// Label is Name without an address, for people.
	Label() string
	// Embed returns a vector for each text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// ErrRefused means that the server refuses at least one of the texts. It may accept
// others.
var ErrRefused = errors.New("the server refused the text")

// ErrNoKey means that the server was not asked because its API key is not available
// now.
var ErrNoKey = errors.New("the embedder's API key is not available")

// Batch is how many texts are best embedded at a time.
const Batch = 32
