// What ../SCENARIOS.md asks for, by the stock Node client.
"use strict"

const { Offset } = require("rabbitmq-stream-js-client")
const {
  LARGE_SIZES,
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
} = require("./session.cjs")

// The client's enumeration of these is not among its exports.
const CODECS = { none: 0, gzip: 1 }
const PARTITIONS = ["0", "1", "2"]
const REGIONS = ["amer", "emea", "apac"]
const GROUP = "group"

async function publishAndRead({ server, stream }, count = 20, params = {}) {
  const session = await server.connect(params)
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  await session.publish(publisher, bodies(0, count - 1))
  const records = await session.read(stream, count)
  return { ...session.counts, read: indexes(records), offsets: records.map((one) => one.offset) }
}

async function batch({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream, maxChunkLength: 100 })
  for (const one of bodies(0, 999)) await publisher.send(one)
  while (await publisher.flush());
  await session.reach(1000)
  return { ...session.counts, read: summary(await session.read(stream, 1000)) }
}

async function large({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  for (const size of LARGE_SIZES) await session.publish(publisher, [largeBody(size)])
  const records = await session.read(stream, LARGE_SIZES.length)
  const sizes = records.map(({ content }) => content.length)
  return { ...session.counts, sizes, read: summary(records) }
}

async function subEntries({ server, stream }, codec) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  const counts = await session.publishSubEntries(publisher, bodies(0, 99), codec)
  return { ...counts, read: indexes(await session.read(stream, 100)) }
}

// `offset` is given the time in the middle of the messages; `isAhead`: ten more are published.
async function beginAt({ server, stream }, { offset, count, isTime = false, isAhead = false }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  await session.publish(publisher, bodies(0, 9))
  if (isTime) await sleep(500)
  const now = Date.now()
  if (isTime) await sleep(500)
  await session.publish(publisher, bodies(10, 18))
  await session.publish(publisher, bodies(19, 19))
  const records = await session.subscribe(stream, offset(now))
  if (isAhead) {
    await sleep(500)
    await session.publish(publisher, bodies(20, 29))
  }
  await arrived(records, count)
  return { read: indexes(records) }
}

async function tracking({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  await session.publish(publisher, bodies(0, 9))
  const before = await session.stored(stream, "app")
  const named = { consumerRef: "app" }
  const { consumer } = await session.subscribe(stream, Offset.next(), named)
  const stored = []
  for (const offset of [4, 7]) stored.push(await session.store(consumer, stream, "app", offset))
  const other = await session.stored(stream, "other")
  const behind = 1 + (await session.stored(stream, "app"))
  const records = await session.read(stream, 2, Offset.offset(BigInt(behind)), named)
  return { before, stored, other, read: indexes(records) }
}

async function dedup({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const confirmed = []
  const last = []
  const declare = () => session.client.declarePublisher({ stream, publisherRef: "p" })
  const send = async (publisher, firstId, sent) => {
    const before = session.confirmed
    await session.publish(publisher, sent, (number) => ({ publishingId: BigInt(firstId + number) }))
    confirmed.push(session.confirmed - before)
    last.push(await publisher.getLastPublishingId())
  }
  let publisher = await declare()
  await send(publisher, 1, bodies(0, 9))
  await send(publisher, 6, bodies(106, 115))
  await session.client.deletePublisher(publisher.extendedId)
  publisher = await declare()
  last.push(await publisher.getLastPublishingId())
  await send(publisher, 15, bodies(215, 216))
  return { confirmed, last, read: indexes(await session.read(stream, 16)) }
}

async function filter({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  for (const [value, sent] of [
    ["apple", bodies(0, 9)],
    ["banana", bodies(10, 19)],
    [undefined, bodies(20, 29)],
  ]) {
    const publisher = await session.client.declarePublisher({ stream }, value && (() => value))
    await session.publish(publisher, sent)
  }
  const choose = async (count, values, matchUnfiltered) => {
    const wanted = { values, matchUnfiltered, postFilterFunc: () => true }
    return indexes(await session.read(stream, count, Offset.first(), { filter: wanted }))
  }
  return {
    confirmed: session.confirmed,
    banana: await choose(10, ["banana"], false),
    "apple or banana": await choose(20, ["apple", "banana"], false),
    "banana or none": await choose(20, ["banana"], true),
  }
}

// The routing key of a message, from what is left of it as a string.
const KEYS = {
  hash: (text) => `key-${parseInt(text.slice(1))}`,
  key: (text) => REGIONS[parseInt(text.slice(1)) % REGIONS.length],
}

async function routing(session, superStream, routingStrategy) {
  const params = { superStream, routingStrategy }
  return await session.client.declareSuperStreamPublisher(params, KEYS[routingStrategy])
}

async function send(session, publisher, sent) {
  const before = session.confirmed
  for (const one of sent) await publisher.send(one, {})
  await session.reach(before + sent.length)
}

async function partitions(session, stream, names) {
  const found = {}
  for (const name of names) found[name] = await session.subscribe(`${stream}-${name}`)
  const all = () => Object.values(found).flat()
  await eventually(
    () => all().length >= 30,
    () => `${all().length} of 30`
  )
  await sleep(300)
  return Object.fromEntries(Object.entries(found).map(([name, records]) => [name, indexes(records)]))
}

async function superHash({ server, stream }) {
  const session = await server.connect()
  await session.client.createSuperStream({ streamName: stream })
  const publisher = await routing(session, stream, "hash")
  await send(session, publisher, bodies(0, 29))
  return { confirmed: session.confirmed, read: await partitions(session, stream, PARTITIONS) }
}

async function superKey({ server, stream }) {
  const session = await server.connect()
  await session.client.createSuperStream({ streamName: stream }, REGIONS)
  const publisher = await routing(session, stream, "key")
  await send(session, publisher, bodies(0, 29))
  return { confirmed: session.confirmed, read: await partitions(session, stream, REGIONS) }
}

async function superRead({ server, stream }) {
  const session = await server.connect()
  await session.client.createSuperStream({ streamName: stream })
  const publisher = await routing(session, stream, "hash")
  await send(session, publisher, bodies(0, 29))
  const records = await readAll(session, stream)
  await arrived(records, 30)
  return { confirmed: session.confirmed, read: indexes(records).sort(ascending) }
}

// Of a super stream this client always reads as one of a group.
async function readAll(session, superStream, more = {}) {
  const records = []
  records.consumer = await session.client.declareSuperStreamConsumer(
    { superStream, offset: Offset.first(), ...more },
    (message, consumer) => {
      records.push({ content: message.content, offset: Number(message.offset), consumer })
    }
  )
  return records
}

async function sac({ server, stream }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  const join = async () => {
    const member = await server.connect()
    const consumerUpdateListener = async () => {
      const found = await session.stored(stream, GROUP)
      return found === "none" ? Offset.first() : Offset.offset(BigInt(found + 1))
    }
    const group = { consumerRef: GROUP, singleActive: true, consumerUpdateListener }
    return { member, records: await member.subscribe(stream, Offset.first(), group) }
  }
  const a = await join()
  await sleep(500)
  const b = await join()
  await sleep(500)
  await session.publish(publisher, bodies(0, 9))
  await arrived(a.records, 10)
  await session.store(a.records.consumer, stream, GROUP, 9)
  await a.member.close()
  await session.publish(publisher, bodies(10, 19))
  await arrived(b.records, 10)
  return { a: indexes(a.records), b: indexes(b.records) }
}

async function superSac({ server, stream }) {
  const session = await server.connect()
  await session.client.createSuperStream({ streamName: stream })
  const publisher = await routing(session, stream, "hash")
  const [memberA, memberB] = [await server.connect(), await server.connect()]
  const a = await readAll(memberA, stream, { consumerRef: GROUP })
  await sleep(500)
  const b = await readAll(memberB, stream, { consumerRef: GROUP })
  await sleep(500)
  await send(session, publisher, bodies(0, 29))
  await eventually(
    () => a.length + b.length >= 30,
    () => `${a.length} and ${b.length} of 30`
  )
  await sleep(300)
  const together = [...indexes(a), ...indexes(b)].sort(ascending)
  for (const { consumer, offset } of [...a, ...b]) await consumer.storeOffset(BigInt(offset))
  const before = b.length
  await sleep(500)
  await memberA.close()
  await send(session, publisher, bodies(30, 59))
  const later = () => new Set(indexes(b.slice(before)))
  await eventually(
    () => bodies(30, 59).every((one) => later().has(indexOf(one))),
    () => [...later()].join(" ")
  )
  await sleep(300)
  return { together, b: [...later()].sort(ascending) }
}

async function reconnect({ server, stream, harness }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  const records = await session.subscribe(stream)
  await session.publish(publisher, bodies(0, 9))
  await arrived(records, 10)
  const before = indexes(records)
  await harness("restart")
  // Its own recovery, which the program has to call.
  await session.client.restart()
  await session.publish(publisher, bodies(10, 19))
  const found = () => [...new Set(indexes(records))]
  await eventually(
    () => found().length >= 20,
    () => found().join(" "),
    60_000
  )
  await sleep(300)
  return { before, after: found().filter((one) => !before.includes(one)), recovery: "library" }
}

async function tls(request) {
  const { server } = request
  return await publishAndRead(request, 20, server.secure(server.options.ca))
}

async function tlsDistrust({ server }) {
  try {
    await server.connect(server.secure(server.options["other-ca"]))
  } catch (error) {
    return { connected: false }
  }
  return { connected: true }
}

async function tlsExternal(request) {
  const { server } = request
  const params = server.secure(server.options.ca, server.identity())
  const nobody = { username: "", password: "", mechanism: "EXTERNAL" }
  return await publishAndRead(request, 5, { ...params, ...nobody })
}

async function errors({ server, stream }) {
  const { client } = await server.connect()
  const missing = `${stream}-x`
  const code = async (call) => {
    try {
      await call()
      return 1
    } catch (error) {
      return codeOf(error)
    }
  }
  const limited = { "max-length-bytes": 1_000_000 }
  const offset = Offset.first()
  return {
    create: await code(() => client.createStream({ stream })),
    again: await code(() => client.createStream({ stream })),
    otherwise: await code(() => client.createStream({ stream, arguments: limited })),
    publish_missing: await code(() => client.declarePublisher({ stream: missing })),
    read_missing: await code(() => client.declareConsumer({ stream: missing, offset }, () => {})),
    delete_missing: await code(() => client.deleteStream({ stream: missing })),
    delete: await code(() => client.deleteStream({ stream })),
    password: await code(() => refused(server.connect({ password: "wrong" }))),
    vhost: await code(() => refused(server.connect({ vhost: "nowhere" }))),
  }
}

// A connection that is refused: the client never answers, its error is thrown where nobody waits.
async function refused(connecting) {
  const lost = new Promise((_, fail) => {
    process.once("unhandledRejection", fail)
    process.once("uncaughtException", fail)
  })
  return await Promise.race([connecting, lost])
}

async function write({ server, stream, values: { codec, count, mark } }) {
  const session = await server.connect()
  await session.client.createStream({ stream })
  const publisher = await session.client.declarePublisher({ stream })
  const sent = bodies(0, Number(count) - 1, mark)
  if (codec !== "plain") return await session.publishSubEntries(publisher, sent, CODECS[codec])
  for (let first = 0; first < sent.length; first += 10) {
    await session.publish(publisher, sent.slice(first, first + 10))
  }
  return session.counts
}

async function read({ server, stream, values: { count, mark } }) {
  const session = await server.connect()
  const records = await session.read(stream, Number(count))
  indexes(records, mark)
  return { read: summary(records) }
}

const hourLater = (now) => Offset.timestamp(new Date(now + 3_600_000))
const beginnings = {
  "offset-first": { offset: () => Offset.first(), count: 20 },
  "offset-last": { offset: () => Offset.last(), count: 1 },
  "offset-next": { offset: () => Offset.next(), count: 10, isAhead: true },
  "offset-absolute": { offset: () => Offset.offset(5n), count: 15 },
  "offset-beyond": { offset: () => Offset.offset(21n), count: 9, isAhead: true },
  "offset-timestamp": { offset: (now) => Offset.timestamp(new Date(now)), count: 10, isTime: true },
  "offset-future": { offset: hourLater, count: 10, isTime: true, isAhead: true },
}

const scenarios = {
  publish: (request) => publishAndRead(request),
  batch,
  large,
  "sub-none": (request) => subEntries(request, CODECS.none),
  "sub-gzip": (request) => subEntries(request, CODECS.gzip),
  ...Object.fromEntries(
    Object.entries(beginnings).map(([name, where]) => [name, (request) => beginAt(request, where)])
  ),
  tracking,
  dedup,
  filter,
  "super-hash": superHash,
  "super-key": superKey,
  "super-read": superRead,
  sac,
  "super-sac": superSac,
  reconnect,
  tls,
  "tls-distrust": tlsDistrust,
  "tls-external": tlsExternal,
  errors,
  write,
  read,
}

module.exports = { scenarios }
