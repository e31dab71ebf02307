package main

import (
	"context"
	"fmt"

	"github.com/toolhost/toolhost/sdk"
	"github.com/toolhost/toolhost/sdk/tool"
)

type (
	message struct {
		Message string `json:"message" jsonschema:"what the user is asked"`
	}
	contact struct {
		Username string `json:"username" jsonschema:"User's response"`
		Email    string `json:"email" jsonschema:"User's email address"`
	}
	profile struct {
		Name     string  `json:"name,omitempty" jsonschema:"User name" default:"John Doe"`
		Age      int     `json:"age,omitempty" jsonschema:"User age" default:"30"`
		Score    float64 `json:"score,omitempty" jsonschema:"User score" default:"95.5"`
		Status   string  `json:"status,omitempty" jsonschema:"User status" enum:"active,inactive,pending" default:"active"`
		Verified bool    `json:"verified,omitempty" jsonschema:"Verification status" default:"true"`
	}
	name struct {
		Name string `json:"name" jsonschema:"your name"`
	}
	consent struct {
		OK bool `json:"ok" jsonschema:"whether to go on"`
	}
	favorite struct {
		Color string `json:"color" jsonschema:"your favorite color"`
	}
)

// addQuestions adds the tools that ask the user.
func addQuestions(p *sdk.Plugin) {
	add(p, "test_elicitation", "Asks the user for a name and an address.", func(ctx context.Context, c *sdk.Call, in message) (tool.Result, error) {
		return ask(ctx, c, in.Message, &contact{})
	})
	add(p, "test_elicitation_sep1034_defaults", "Asks the user, with a default for every answer.", asking[profile]("Please review your profile"))
	add(p, "test_streaming_elicitation", "Asks the user for a name.", asking[name]("What is your name?"))
	add(p, "test_input_required_result_elicitation", "Asks the user for a name.", asking[name]("What is your name?"))
	add(p, "test_input_required_result_request_state", "Asks the user for consent.", asking[consent]("Please confirm"))
	add(p, "test_input_required_result_tampered_state", "Asks the user for consent.", asking[consent]("Please confirm"))
	add(p, "test_input_required_result_multi_round", "Asks the user for a name, then for a color.",
		func(ctx context.Context, c *sdk.Call, _ none) (tool.Result, error) {
			if result, err := ask(ctx, c, "Step 1: What is your name?", &name{}); err != nil {
				return result, err
			}
			return ask(ctx, c, "Step 2: What is your favorite color?", &favorite{})
		})
}

// asking returns the function of a tool that has one question.
func asking[Form any](question string) func(context.Context, *sdk.Call, none) (tool.Result, error) {
	return func(ctx context.Context, c *sdk.Call, _ none) (tool.Result, error) {
		return ask(ctx, c, question, new(Form))
	}
}

// ask answers with what the user has answered.
func ask(ctx context.Context, c *sdk.Call, question string, form any) (tool.Result, error) {
	answered, err := c.AskUser(ctx, question, form)
	switch {
	case err != nil:
		return tool.Result{}, err
	case !answered:
		return tool.TextResult("the user has declined"), nil
	}
	return tool.TextResult(fmt.Sprintf("User response: %+v", form)), nil
}
