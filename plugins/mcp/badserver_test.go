package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// message is a message of JSON-RPC.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// peer is a server that a script controls.
type peer struct {
	in  *bufio.Scanner
	out *bufio.Writer
	// handle answers a request in another way than a good server; it reports whether it did.
	handle func(p *peer, m message) bool
	tools  string // the list of tools
	lists  int    // how often the list was asked for
	calls  int    // how often a tool was called
}

const oneTool = `[{"name":"run","description":"Runs.","inputSchema":{"type":"object"}}]`

func (p *peer) send(format string, args ...any) {
	fmt.Fprintf(p.out, format+"\n", args...)
	p.out.Flush()
}

func (p *peer) result(id json.RawMessage, result string) {
	p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func (p *peer) fail(id json.RawMessage, code int, text string) {
	quoted, _ := json.Marshal(text)
	p.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, quoted)
}

const initialized = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"peer","version":"1"}}`

// next returns the next message.
func (p *peer) next() (m message, ok bool) {
	if !p.in.Scan() {
		return m, false
	}
	return m, json.Unmarshal(p.in.Bytes(), &m) == nil
}

// serve answers until the input ends.
func (p *peer) serve() {
	for {
		m, ok := p.next()
		if !ok {
			return
		}
		if p.handle != nil && p.handle(p, m) {
			continue
		}
		switch m.Method {
		case "initialize":
			p.result(m.ID, initialized)
		case "tools/list":
			p.lists++
			p.result(m.ID, `{"tools":`+p.tools+`}`)
		case "tools/call":
			p.result(m.ID, `{"content":[{"type":"text","text":"done"}]}`)
		default:
			if len(m.ID) > 0 {
				p.fail(m.ID, -32601, "no such method")
			}
		}
	}
}

// on returns a function for handle that does something for one method.
func on(method string, do func(p *peer, m message)) func(*peer, message) bool {
	return func(p *peer, m message) bool {
		if m.Method == method {
			do(p, m)
		}
		return m.Method == method
	}
}

// scripts are the servers of the tests that do not keep the protocol.
var scripts = map[string]func(p *peer){
	"plain":  func(p *peer) { p.serve() },
	"silent": func(*peer) { _, _ = io.Copy(io.Discard, os.Stdin) },
	"exits":  func(*peer) { fmt.Fprintln(os.Stderr, "cannot find module 'x'"); os.Exit(7) },
	"ignores unknown methods": func(p *peer) {
		p.handle = on("server/discover", func(*peer, message) {})
		p.serve()
	},
	"exits on unknown methods": func(p *peer) {
		p.handle = on("server/discover", func(*peer, message) { os.Exit(1) })
		p.serve()
	},
	"unknown revision": func(p *peer) {
		p.handle = on("initialize", func(p *peer, m message) {
			p.result(m.ID, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		})
		p.serve()
	},
	"never lists": func(p *peer) {
		p.handle = on("tools/list", func(*peer, message) {})
		p.serve()
	},
	"endless list": func(p *peer) {
		p.handle = on("tools/list", func(p *peer, m message) {
			p.lists++
			p.result(m.ID, fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{}}],"nextCursor":"%d"}`, p.lists, p.lists))
		})
		p.serve()
	},
	"repeated cursor": func(p *peer) {
		p.handle = on("tools/list", func(p *peer, m message) {
			p.result(m.ID, `{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"x"}`)
		})
		p.serve()
	},
	"10,000 tools": func(p *peer) {
		var list []string
		for i := range 10_000 {
			list = append(list, fmt.Sprintf(`{"name":"tool_%d","description":"d","inputSchema":{"type":"object"}}`, i))
		}
		p.tools = "[" + strings.Join(list, ",") + "]"
		p.serve()
	},
	"hostile names": func(p *peer) {
		p.tools = `[{"name":"` + strings.Repeat("n", 500) + `","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}},{"name":"READ","inputSchema":{"type":"object"}},` +
			`{"name":"r\u0435ad","inputSchema":{"type":"object"}},{"name":"","inputSchema":{"type":"object"}},null,{"name":"x","description":"\u001b[2J\u202e","inputSchema":null}]`
		p.serve()
	},
	"other tools at each list": func(p *peer) {
		p.handle = func(p *peer, m message) bool {
			switch m.Method {
			case "tools/list":
				p.lists++
				p.result(m.ID, fmt.Sprintf(`{"tools":[{"name":"run","inputSchema":{"type":"object"}},{"name":"tool_%d","inputSchema":{"type":"object"}}]}`, p.lists))
			case "tools/call":
				p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				p.result(m.ID, `{"content":[]}`)
			default:
				return false
			}
			return true
		}
		p.serve()
	},
	"other tools after a crash": func(p *peer) {
		name, mark := "before", os.Getenv("MARK")+"/started"
		if _, err := os.Stat(mark); err == nil {
			name = "after"
		}
		p.tools = `[{"name":"run","inputSchema":{"type":"object"}},{"name":"` + name + `","inputSchema":{"type":"object"}}]`
		p.handle = on("tools/call", func(p *peer, m message) {
			if name == "after" {
				p.fail(m.ID, -32000, "it works again")
				return
			}
			_ = os.WriteFile(mark, nil, 0o600)
			os.Exit(1)
		})
		p.serve()
	},
	"a list that is none": func(p *peer) { p.tools = `{"a":1}`; p.serve() },
	"answers twice": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			p.result(m.ID, `{"content":[{"type":"text","text":"first"}]}`)
			p.result(m.ID, `{"content":[{"type":"text","text":"second"}]}`)
			p.result(json.RawMessage(`"another"`), `{}`)
		})
		p.serve()
	},
	"huge result": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			part := strings.Repeat("x", 1<<20)
			for range 100 {
				_, _ = p.out.WriteString(part)
			}
			p.send(`"}]}}`)
		})
		p.serve()
	},
	"text on stdout": func(p *peer) {
		p.send("Server is starting...\n\n{\"level\":\"info\"}\n[]\n[1]")
		p.serve()
	},
	"only text on stdout": func(p *peer) {
		for {
			p.send("still starting")
			if _, err := p.out.WriteString(""); err != nil {
				return
			}
		}
	},
	"deep": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			p.send("%s", strings.Repeat("[", 1<<20))
			p.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000))
			p.result(m.ID, `{"content":[{"type":"text","text":"done"}]}`)
		})
		p.serve()
	},
	"no result": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) { p.result(m.ID, `{"content":[{"type":"text"},null,7]}`) })
		p.serve()
	},
	"closes": func(p *peer) {
		p.handle = on("tools/call", func(*peer, message) { os.Exit(0) })
		p.serve()
	},
	"forks": func(p *peer) {
		c := exec.Command("sleep", "1000") // what the server leaves behind
		_ = c.Start()
		p.handle = on("tools/call", func(p *peer, m message) {
			p.result(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":"%d"}]}`, c.Process.Pid))
		})
		p.serve()
	},
	"asks for everything": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			var answers []string
			for _, method := range []string{"sampling/createMessage", "roots/list", "ping", "no/such"} {
				p.send(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{"messages":[],"maxTokens":1}}`, method)
				if p.in.Scan() {
					answers = append(answers, p.in.Text())
				}
			}
			text, _ := json.Marshal(strings.Join(answers, "\n"))
			p.result(m.ID, `{"content":[{"type":"text","text":`+string(text)+`}]}`)
		})
		p.serve()
	},
	"floods with requests": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, _ message) {
			for i := range 10_000 {
				p.send(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}`, i)
			}
		})
		p.serve()
	},
	"floods with logs": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			for i := range 2_000 {
				p.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%d\u001b[2J"}}`, i)
				p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":%d,"message":"\u202e"}}`, i)
				p.send(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
				p.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				fmt.Fprintf(os.Stderr, "line %d\n", i)
			}
			p.result(m.ID, `{"content":[{"type":"text","text":"done"}]}`)
		})
		p.serve()
	},
	"does not read": func(p *peer) {
		p.handle = on("tools/call", func(*peer, message) { select {} })
		p.serve()
	},
	"refuses": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) { p.fail(m.ID, -32602, "bad\x1b[2J arguments") })
		p.serve()
	},
	"pretends to be closed": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			p.calls++
			p.fail(m.ID, -32004, fmt.Sprintf("server is closing, call %d", p.calls))
		})
		p.serve()
	},
	"asks to open": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			p.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"url","message":"Sign in.","url":"https://example.com/\u202e","elicitationId":"1"}}`)
			answer, _ := p.next()
			text, _ := json.Marshal(string(answer.Result))
			p.result(m.ID, `{"content":[{"type":"text","text":`+string(text)+`}]}`)
		})
		p.serve()
	},
	"asks when two calls run": func(p *peer) {
		var first message
		p.handle = on("tools/call", func(p *peer, m message) {
			if first.ID == nil {
				first = m
				p.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}}`)
				return
			}
			p.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"form","message":"Whose?","requestedSchema":{"type":"object","properties":{}}}}`)
			answer, _ := p.next()
			text, _ := json.Marshal(string(answer.Result))
			p.result(m.ID, `{"content":[{"type":"text","text":`+string(text)+`}]}`)
			p.result(first.ID, `{"content":[]}`)
		})
		p.serve()
	},
	"batch": func(p *peer) {
		p.handle = on("tools/call", func(p *peer, m message) {
			p.send(`[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"1","progress":1}},{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"in a batch"}]}}]`, m.ID)
		})
		p.serve()
	},
}

// serveScript is the program of a server.
func serveScript(name string) {
	if at := map[string]mcp.Transport{"good": &mcp.StdioTransport{}, "good and older": &olderTransport{}}[name]; at != nil {
		if err := goodServer().Run(context.Background(), at); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	p := &peer{in: bufio.NewScanner(os.Stdin), out: bufio.NewWriterSize(os.Stdout, 1<<16), tools: oneTool}
	p.in.Buffer(nil, 64<<20)
	script, ok := scripts[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no script", name)
		os.Exit(2)
	}
	script(p)
}
