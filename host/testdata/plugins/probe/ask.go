package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type ask struct {
	Question string `json:"question" jsonschema:"what to ask the user"`
	Times    int    `json:"times,omitempty" jsonschema:"how often" default:"1"`
}

type reply struct {
	N     int    `json:"n" jsonschema:"a number"`
	Color string `json:"color,omitempty" jsonschema:"a color" enum:"red,green" default:"red"`
}

// addQuestions adds tools that ask the user; one of them changes something.
func (b *probe) addQuestions(p *sdk.Plugin, prefix string) {
	add(p, prefix+"_ask", "Asks the user, and tells the answers.", askUser)
	sdk.AddTool(p, tool.Spec{
		Name: prefix + "_survey", Tier: tool.SideEffecting, Description: "Asks the user, and would change something.",
	}, askUser)
}

// askUser tells each answer on a line.
func askUser(ctx context.Context, c *sdk.Call, in ask) (string, error) {
	var said []string
	for range in.Times {
		var answer reply
		answered, err := c.AskUser(ctx, in.Question, &answer)
		switch {
		case err != nil:
			return "", err
		case !answered:
			said = append(said, "declined")
		default:
			said = append(said, fmt.Sprintf("%d %s", answer.N, answer.Color))
		}
	}
	return strings.Join(said, "\n"), nil
}
