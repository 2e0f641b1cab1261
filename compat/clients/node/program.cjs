// The scenarios of ../SCENARIOS.md by the stock Node client.
//
//     node program.cjs --host localhost --port 5552 … [SCENARIO STREAM [name=value …]]
"use strict"

const readline = require("node:readline")
const { parseArgs } = require("node:util")
const { Server } = require("./session.cjs")
const { scenarios } = require("./scenarios.cjs")

const LIMIT_MS = 80_000

function say(what) {
  const text = (_, value) => (typeof value === "bigint" ? Number(value) : value)
  process.stdout.write(JSON.stringify(what, text) + "\n")
}

async function run(server, lines, words) {
  const [name, stream, ...pairs] = words
  const values = Object.fromEntries(pairs.map((pair) => pair.split("=")))
  const harness = async (what) => {
    say({ wait: what })
    const { value } = await lines.next()
    if (value?.trim() !== "go") throw new Error(`the harness answered ${value}`)
  }
  let timer
  const limit = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`not within ${LIMIT_MS} ms`)), LIMIT_MS)
  })
  try {
    const scenario = scenarios[name]({ server, stream, values, harness })
    say({ ok: await Promise.race([scenario, limit]) })
  } catch (error) {
    console.error(name, error)
    say({ error: error instanceof Error ? error.message : String(error) })
  } finally {
    clearTimeout(timer)
    await server.closeAll()
  }
}

async function main() {
  const names = ["host", "port", "tls-port", "ca", "other-ca", "cert", "key"]
  const { values, positionals } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
    allowPositionals: true,
  })
  const server = new Server(values)
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  if (positionals.length) {
    await run(server, lines, positionals)
    return
  }
  const { version } = require("rabbitmq-stream-js-client/package.json")
  say({ ready: { client: "node", version, scenarios: Object.keys(scenarios) } })
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    await run(server, lines, line.value.split(" "))
  }
}

// A lost connection surfaces in promises that the client does not hand out.
process.on("unhandledRejection", (reason) => console.error("unhandled rejection", reason))
process.on("uncaughtException", (error) => console.error("uncaught", error))

main().then(() => process.exit(0))
