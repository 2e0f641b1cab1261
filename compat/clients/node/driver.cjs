// Drives the stock Node stream client from another process, one JSON command a line.
//
// In:   {"id": 1, "do": "publish", "publisher": "p", "count": 10}
// Out:  {"id": 1, "ok": {"confirmed": 10}}  or  {"id": 1, "error": "…"}
//
// Commands run one after another. What a consumer received is handed over in a file
// (u64 offset, u32 size, body; big-endian), since pipes of JSON are slow for 100,000 records.
"use strict"

const fs = require("node:fs")
const readline = require("node:readline")
const path = require("node:path")
const { createRequire } = require("node:module")

// The client is installed outside the source tree; the test says where.
const load = createRequire(path.join(process.env.HUTCH_NODE_CLIENT || __dirname, "package.json"))
const { connect, Offset } = load("rabbitmq-stream-js-client")

// The client's enumeration of these is not among its exports.
const NO_COMPRESSION = 0
const GZIP = 1

let client = null
const publishers = new Map()
const consumers = new Map()
const events = []

// The same bytes as `body` in tests/integration/clients/messages.py.
function body(index, mark) {
  return Buffer.from(`${mark}${index}-${"x".repeat((index * 7) % 90)}`)
}

function offsetOf(spec) {
  switch (spec.type) {
    case "offset":
      return Offset.offset(BigInt(spec.value))
    case "timestamp":
      return Offset.timestamp(new Date(spec.value))
    default:
      return Offset[spec.type]()
  }
}

async function until(condition, seconds, what) {
  const deadline = Date.now() + seconds * 1000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${what()}`)
    await new Promise((done) => setTimeout(done, 5))
  }
}

async function confirmed(entry, count, seconds) {
  await until(
    () => entry.confirmed.length + entry.errors.length >= count,
    seconds,
    () => `${entry.confirmed.length} of ${count} confirmed`
  )
  return {
    confirmed: entry.confirmed.length,
    ids: entry.confirmed.slice(0, 100).map(String),
    errors: entry.errors.slice(0, 100),
  }
}

const commands = {
  async connect({ host, port }) {
    client = await connect({
      hostname: host,
      port,
      username: "guest",
      password: "guest",
      vhost: "/",
      listeners: {
        connection_closed: (hadError) => events.push({ event: "connection_closed", hadError }),
        metadata_update: (update) =>
          events.push({ event: "metadata_update", ...update.metadataInfo }),
      },
    })
    return { version: client.rabbitManagementVersion, info: client.getConnectionInfo() }
  },

  async restart() {
    await client.restart()
  },

  async create({ stream, arguments: settings }) {
    return await client.createStream({ stream, arguments: settings })
  },

  async delete({ stream }) {
    return await client.deleteStream({ stream })
  },

  async metadata({ stream }) {
    const [info] = await client.queryMetadata({ streams: [stream] })
    return { code: info.responseCode, leader: info.leader }
  },

  async stats({ stream }) {
    const statistics = await client.streamStatsRequest(stream)
    return Object.fromEntries(Object.entries(statistics).map(([key, value]) => [key, String(value)]))
  },

  // With `values`, a hundred records in a row have the first as their filter value, the next
  // hundred the second, and so on, round and round.
  async declare({ publisher: name, stream, reference, values }) {
    const valueOf = ({ content }) =>
      values[Math.floor(parseInt(content.toString().slice(1)) / 100) % values.length]
    const publisher = await client.declarePublisher(
      { stream, publisherRef: reference, maxChunkLength: 1000 },
      values && valueOf
    )
    const entry = { publisher, confirmed: [], errors: [] }
    publisher.on("publish_confirm", (error, ids) => {
      if (error === null) entry.confirmed.push(...ids)
      else entry.errors.push(error)
    })
    publishers.set(name, entry)
    return { sequence: reference ? String(await publisher.getLastPublishingId()) : null }
  },

  // With `firstId`, the records carry publishing ids firstId, firstId + 1, …
  async publish({ publisher: name, mark = "m", first = 0, count = 1, firstId, seconds = 30 }) {
    const entry = publishers.get(name)
    entry.confirmed = []
    entry.errors = []
    for (let i = 0; i < count; i++) {
      const options = firstId === undefined ? {} : { publishingId: BigInt(firstId + i) }
      await entry.publisher.send(body(first + i, mark), options)
    }
    while (await entry.publisher.flush());
    return await confirmed(entry, count, seconds)
  },

  // One sub-entry of `count` records, confirmed before this returns.
  async publishSubEntry({ publisher: name, mark = "m", first = 0, count, gzip, seconds = 30 }) {
    const entry = publishers.get(name)
    entry.confirmed = []
    entry.errors = []
    const messages = Array.from({ length: count }, (_, i) => ({ content: body(first + i, mark) }))
    await entry.publisher.sendSubEntries(messages, gzip ? GZIP : NO_COMPRESSION)
    return await confirmed(entry, 1, seconds)
  },

  async sequence({ publisher: name }) {
    return String(await publishers.get(name).publisher.getLastPublishingId())
  },

  async closePublisher({ publisher: name }) {
    await publishers.get(name).publisher.close()
    publishers.delete(name)
  },

  // `filter`: {values, matchUnfiltered}; every message of a delivered chunk is received.
  async subscribe({ consumer: name, stream, offset, reference, filter }) {
    const entry = { consumer: null, received: [] }
    consumers.set(name, entry)
    entry.consumer = await client.declareConsumer(
      {
        stream,
        offset: offsetOf(offset),
        consumerRef: reference,
        filter: filter && { postFilterFunc: () => true, ...filter },
      },
      (message) => {
        entry.received.push([message.offset, message.content])
      }
    )
  },

  // Wait for `count` records, then `quietMs` more for any that should not have come.
  async take({ consumer: name, count, file, seconds = 30, quietMs = 50 }) {
    const { received } = consumers.get(name)
    const enough = () => received.length >= count
    await until(enough, seconds, () => `${received.length} of ${count} received`)
    await new Promise((done) => setTimeout(done, quietMs))
    const parts = []
    for (const [offset, content] of received) {
      const head = Buffer.alloc(12)
      head.writeBigUInt64BE(offset, 0)
      head.writeUInt32BE(content.length, 8)
      parts.push(head, content)
    }
    fs.writeFileSync(file, Buffer.concat(parts))
    return { count: received.length }
  },

  async store({ consumer: name, offset }) {
    await consumers.get(name).consumer.storeOffset(BigInt(offset))
  },

  async query({ stream, reference }) {
    return String(await client.queryOffset({ stream, reference }))
  },

  async events() {
    return events
  },

  async close() {
    await client.close()
  },
}

async function answer(line) {
  const { id, do: name, ...options } = JSON.parse(line)
  const reply = { id }
  try {
    reply.ok = (await commands[name](options)) ?? null
  } catch (error) {
    reply.error = error instanceof Error ? error.message : String(error)
  }
  const json = JSON.stringify(reply, (_, value) => (typeof value === "bigint" ? String(value) : value))
  process.stdout.write(json + "\n")
}

// A lost connection surfaces in promises that the client does not hand out.
process.on("unhandledRejection", (reason) => console.error("unhandled rejection", reason))

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) await answer(line)
  process.exit(0)
}

main()
