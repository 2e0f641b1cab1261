// Short ways to connect, publish and read with the stock Node client.
"use strict"

const crypto = require("node:crypto")
const fs = require("node:fs")
const { connect, Offset } = require("rabbitmq-stream-js-client")

const LIMIT_MS = 20_000
const QUIET_MS = 300
const LARGE_SIZES = [1, 127, 255, 256, 4095, 65_535, 65_536, 1_000_000]

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

async function eventually(isSo, what, limitMs = LIMIT_MS) {
  const deadline = Date.now() + limitMs
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what()}`)
    await sleep(5)
  }
}

// Wait for as many, and a little for more that should not come.
async function arrived(records, count) {
  await eventually(
    () => records.length >= count,
    () => `${records.length} of ${count}`
  )
  await sleep(QUIET_MS)
}

function body(index, mark = "m") {
  const rest = Buffer.from(Array.from({ length: (index * 7) % 90 }, (_, k) => (index + k) % 256))
  return Buffer.concat([Buffer.from(`${mark}${index}-`), rest])
}

// The messages `first` to `last`, both included.
function bodies(first, last, mark = "m") {
  return Array.from({ length: last - first + 1 }, (_, k) => body(first + k, mark))
}

function largeBody(size) {
  return Buffer.from(Array.from({ length: size }, (_, k) => (size + k) % 256))
}

function indexOf(content, mark = "m") {
  const name = content.subarray(0, content.indexOf("-")).toString()
  const index = Number(name.slice(mark.length))
  if (!name.startsWith(mark) || !Number.isInteger(index) || !content.equals(body(index, mark))) {
    throw new Error(`no message of mark ${mark}: ${content.subarray(0, 60)}`)
  }
  return index
}

const indexes = (records, mark) => records.map(({ content }) => indexOf(content, mark))
const ascending = (a, b) => a - b

function summary(records) {
  const digest = crypto.createHash("sha256")
  for (const { content } of records) {
    const size = Buffer.alloc(4)
    size.writeUInt32BE(content.length)
    digest.update(size).update(content)
  }
  return { count: records.length, sha256: digest.digest("hex") }
}

// The server under test, and every client connected to it during a scenario.
class Server {
  #clients = []

  constructor(options) {
    this.options = options
  }

  // TLS, trusting the authority in a file.
  secure(authority, more = {}) {
    const ssl = { ca: fs.readFileSync(authority, "utf8"), ...more }
    return { port: Number(this.options["tls-port"]), ssl }
  }

  // The client's own certificate and key.
  identity() {
    return {
      cert: fs.readFileSync(this.options.cert, "utf8"),
      key: fs.readFileSync(this.options.key, "utf8"),
    }
  }

  async connect(params = {}) {
    const session = new Session()
    session.client = await connect({
      hostname: this.options.host,
      port: Number(this.options.port),
      username: "guest",
      password: "guest",
      vhost: "/",
      ...params,
      listeners: session.listeners,
    })
    this.#clients.push(session)
    return session
  }

  async closeAll() {
    const sessions = this.#clients.splice(0)
    await Promise.allSettled(sessions.map((session) => session.close()))
  }
}

// A client, with the confirms of all its publishers.
class Session {
  client = null
  confirmed = 0
  refused = 0
  isLost = false
  #isClosed = false
  listeners = {
    publish_confirm: ({ publishingIds }) => (this.confirmed += publishingIds.length),
    publish_error: () => (this.refused += 1),
    connection_closed: () => (this.isLost = true),
  }

  async close() {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.client.close()
  }

  get counts() {
    return { confirmed: this.confirmed, refused: this.refused }
  }

  async reach(count, limitMs) {
    await eventually(
      () => this.confirmed + this.refused >= count,
      () => `${this.confirmed} confirmed, ${this.refused} refused of ${count}`,
      limitMs
    )
  }

  // Send each message by itself, wait for all.
  async publish(publisher, sent, optionsOf = () => ({})) {
    const before = this.confirmed + this.refused
    for (const [number, one] of sent.entries()) await publisher.send(one, optionsOf(number))
    await this.reach(before + sent.length)
  }

  // Ten messages after the other as one sub-entry, which has one confirm; count the messages.
  async publishSubEntries(publisher, sent, codec) {
    const counts = { confirmed: 0, refused: 0 }
    for (let first = 0; first < sent.length; first += 10) {
      const messages = sent.slice(first, first + 10).map((content) => ({ content }))
      const { confirmed, refused } = this
      await publisher.sendSubEntries(messages, codec)
      await this.reach(confirmed + refused + 1)
      counts.confirmed += (this.confirmed - confirmed) * messages.length
      counts.refused += (this.refused - refused) * messages.length
    }
    return counts
  }

  // A list that grows with every message that arrives; `consumer` reads them.
  async subscribe(stream, offset = Offset.first(), more = {}) {
    const records = []
    const note = ({ content, offset: at }) => {
      records.push({ content, offset: Number(at) })
    }
    records.consumer = await this.client.declareConsumer({ stream, offset, ...more }, note)
    return records
  }

  async read(stream, count, offset, more) {
    const records = await this.subscribe(stream, offset, more)
    await arrived(records, count)
    await this.client.closeConsumer(records.consumer.extendedId)
    return records
  }

  // The stored offset, or "none".
  async stored(stream, reference) {
    try {
      return Number(await this.client.queryOffset({ stream, reference }))
    } catch (error) {
      if (codeOf(error) === 19) return "none"
      throw error
    }
  }

  async store(consumer, stream, reference, offset) {
    await consumer.storeOffset(BigInt(offset))
    let answer
    const deadline = Date.now() + LIMIT_MS
    while ((answer = await this.stored(stream, reference)) !== offset && Date.now() < deadline);
    return answer
  }
}

// The response code in an error's text, or its name.
function codeOf(error) {
  const found = /(?:\bcode|->) (\d+)/.exec(error.message)
  return found ? Number(found[1]) : error.name
}

module.exports = {
  LARGE_SIZES,
  Server,
  arrived,
  ascending,
  bodies,
  codeOf,
  eventually,
  indexOf,
  indexes,
  largeBody,
  sleep,
  summary,
}
