-- metaroce.lua - Wireshark dissector for MetaRoCE, the RDMA transport of dsfemu's hosts
--
-- usage: tshark -X lua_script:metaroce.lua -r FILE
--
-- The layout is that of src/metaroce/wire.h (our own: the published text gives mechanisms, not
-- formats), on UDP port 4794. Filters: metaroce.type == 1, metaroce.path == 3, metaroce.msn == 7,
-- metaroce.rtx == 1, metaroce.pblk.gap == 1, metaroce.malformed, …

local UDP_PORT = 4794
local VERSION = 1
local MCH_SIZE = 20
local PATHS_MAX = 256
local PLANES_MAX = 16
local PBLKS_MAX = 8
local SBLKS_MAX = 32
local PBLK_SIZE = 56
local SBLK_SIZE = 8

local TYPE = { DATA = 0, ACK = 1, NACK = 2, CONN = 3, PROBE = 4 }
local type_names = { [0] = "DATA", "ACK", "NACK", "CONN", "PROBE" }
local opcode_names = {
	[0x04] = "SEND", [0x05] = "SEND with immediate", [0x0a] = "WRITE",
	[0x0b] = "WRITE with immediate", [0x0c] = "READ request", [0x10] = "READ response",
	[0x12] = "ATOMIC response", [0x13] = "COMPARE and SWAP", [0x14] = "FETCH and ADD"
}
-- Headers behind BTH, in the order in which they come.
local opcode_headers = {
	[0x04] = {}, [0x05] = { "imm" }, [0x0a] = { "reth" }, [0x0b] = { "reth", "imm" },
	[0x0c] = { "reth" }, [0x10] = { "aeth" }, [0x12] = { "aeth", "atomicack" },
	[0x13] = { "atomic" }, [0x14] = { "atomic" }
}
local nack_names = {
	[0x01] = "trimmed", [0x02] = "trimmed at the last hop", [0x20] = "receiver not ready",
	[0x61] = "invalid request", [0x62] = "access not allowed", [0x63] = "operation failed",
	[0x80] = "unknown connection", [0x81] = "stale epoch", [0x82] = "no resource",
	[0x83] = "outside the window"
}
local conn_names = {
	[1] = "request", [2] = "reply", [3] = "ready", [4] = "close", [5] = "close ack",
	[6] = "reset", [7] = "plane update"
}
local probe_names = {
	[0] = "path", [1] = "tail", [2] = "stream", [3] = "keepalive", [4] = "fill"
}

local proto = Proto("metaroce", "MetaRoCE")

local f = {}
local function field(key, make, ...)
	f[key] = make("metaroce." .. key, ...)
end

field("version", ProtoField.uint8, "Version", base.DEC, nil, 0xf0)
field("type", ProtoField.uint8, "Type", base.DEC, type_names, 0x0f)
field("flags", ProtoField.uint8, "Flags", base.HEX)
field("rtx", ProtoField.bool, "Retransmission", 8, nil, 0x80)
field("ackreq", ProtoField.bool, "Answer wanted", 8, nil, 0x40)
field("first", ProtoField.bool, "First of its message", 8, nil, 0x20)
field("last", ProtoField.bool, "Last of its message", 8, nil, 0x10)
field("moved", ProtoField.bool, "Moved from another path", 8, nil, 0x08)
field("idle_after", ProtoField.bool, "Nothing more to send", 8, nil, 0x04)
field("hint_limited", ProtoField.bool, "Held back by the rate hint alone", 8, nil, 0x02)
field("reserved_flag", ProtoField.bool, "Reserved", 8, nil, 0x01)
field("path", ProtoField.uint16, "Path")
field("connection", ProtoField.uint32, "Connection (the receiver's id)", base.HEX)
field("sequence", ProtoField.uint32, "Sequence")
field("tx_ts", ProtoField.uint32, "Sender's clock (64 ns)")
field("epoch", ProtoField.uint8, "Epoch of the path")
field("plane", ProtoField.uint8, "Plane")
field("backlog", ProtoField.uint16, "Backlog (4,096 bytes)")
field("msn", ProtoField.uint32, "Message number")
field("rq_match", ProtoField.uint32, "Receive it consumes")
field("offset", ProtoField.uint32, "Offset in its message")
field("message_size", ProtoField.uint32, "Message size")
field("source_qp", ProtoField.uint24, "Source QP")
field("mflags", ProtoField.uint8, "Message flags", base.HEX)
field("moved_path", ProtoField.uint16, "Sent first on path")
field("moved_epoch", ProtoField.uint8, "in its epoch")
field("moved_sequence", ProtoField.uint32, "as sequence")
field("opcode", ProtoField.uint8, "BTH: opcode", base.HEX, opcode_names)
field("bth_flags", ProtoField.uint8, "BTH: flags", base.HEX)
field("pkey", ProtoField.uint16, "BTH: partition key", base.HEX)
field("target_qp", ProtoField.uint24, "BTH: target QP")
field("bth_ackreq", ProtoField.bool, "BTH: answer wanted", 8, nil, 0x80)
field("psn", ProtoField.uint24, "BTH: packet sequence number")
field("address", ProtoField.uint64, "Remote address", base.HEX)
field("key", ProtoField.uint32, "Remote key", base.HEX)
field("length", ProtoField.uint32, "DMA length")
field("swap_add", ProtoField.uint64, "Swap or add", base.HEX)
field("compare", ProtoField.uint64, "Compare", base.HEX)
field("syndrome", ProtoField.uint8, "Syndrome", base.HEX)
field("aeth_msn", ProtoField.uint24, "AETH: message number")
field("original", ProtoField.uint64, "Original value", base.HEX)
field("immediate", ProtoField.uint32, "Immediate", base.HEX)
field("payload", ProtoField.bytes, "Payload")
field("payload_size", ProtoField.uint32, "Payload size")
field("pblks", ProtoField.uint8, "Path blocks")
field("sblks", ProtoField.uint8, "Stream blocks")
field("planes", ProtoField.uint8, "Planes")
field("active_senders", ProtoField.uint16, "Active senders at the receiver")
field("hint_epoch", ProtoField.uint16, "Epoch of the rate hint")
field("rx_bytes", ProtoField.uint32, "Payload received, modulo 2^32")
field("max_inflight", ProtoField.uint32, "Most bytes in flight (4,096 bytes; 0: no bound)")
field("share", ProtoField.uint32, "Share of a plane (10 kbit/s; 0: none)")
field("pblk", ProtoField.none, "Path block")
field("pblk.path", ProtoField.uint16, "Path")
field("pblk.epoch", ProtoField.uint8, "Latest epoch seen")
field("pblk.flags", ProtoField.uint8, "Flags", base.HEX)
field("pblk.gap", ProtoField.bool, "Something is missing", 8, nil, 0x01)
field("pblk.duplicate", ProtoField.bool, "A duplicate came", 8, nil, 0x02)
field("pblk.probe_response", ProtoField.bool, "Answers a probe", 8, nil, 0x04)
field("pblk.epoch_crossed", ProtoField.bool, "Epochs crossed", 8, nil, 0x08)
field("pblk.next", ProtoField.uint32, "Next expected")
field("pblk.sack", ProtoField.bytes, "Received behind it (256 bits, 64-bit words)")
field("pblk.ecn_packets", ProtoField.uint32, "Packets with CE, total")
field("pblk.rx_packets", ProtoField.uint32, "Packets, total")
field("pblk.ts_echo", ProtoField.uint32, "Clock of the latest packet")
field("pblk.ack_delay", ProtoField.uint16, "Time since it (64 ns)")
field("sblk", ProtoField.none, "Stream block")
field("sblk.qp", ProtoField.uint24, "QP")
field("sblk.syndrome", ProtoField.uint8, "Syndrome", base.HEX)
field("sblk.msn", ProtoField.uint32, "Messages complete before")
field("nack.code", ProtoField.uint8, "Code", base.HEX, nack_names)
field("nack.timer", ProtoField.uint8, "Timer")
field("nack.path", ProtoField.uint16, "About path")
field("nack.sequence", ProtoField.uint32, "About sequence")
field("nack.qp", ProtoField.uint24, "QP")
field("conn.op", ProtoField.uint8, "Operation", base.DEC, conn_names)
field("conn.version", ProtoField.uint8, "Version")
field("conn.paths", ProtoField.uint16, "Paths")
field("conn.connection", ProtoField.uint32, "Connection (the sender's id)", base.HEX)
field("conn.cookie", ProtoField.uint64, "Cookie", base.HEX)
field("conn.address", ProtoField.ipv6, "Address of the NIC")
field("conn.rate", ProtoField.uint32, "Rate of a port (10 kbit/s)")
field("conn.payload_max", ProtoField.uint16, "Largest payload")
field("conn.sack_bits", ProtoField.uint16, "SACK bits")
field("conn.features", ProtoField.uint32, "Planes that are up", base.HEX)
field("conn.planes", ProtoField.uint8, "Planes")
field("conn.status", ProtoField.uint8, "Status")
field("conn.plane_address", ProtoField.ipv6, "Address on a plane")
field("probe.id", ProtoField.uint32, "Id")
field("probe.tail", ProtoField.uint32, "Highest sequence sent")
field("probe.qp", ProtoField.uint24, "QP")
field("probe.kind", ProtoField.uint8, "Kind", base.DEC, probe_names)
field("probe.msn", ProtoField.uint32, "Message number")
field("reserved", ProtoField.bytes, "Reserved")
field("trailer", ProtoField.bytes, "Bytes behind the end")

local list = {}
for _, one in pairs(f) do
	list[#list + 1] = one
end
proto.fields = list

local malformed_expert = ProtoExpert.new("metaroce.malformed", "Malformed", expert.group.MALFORMED,
	expert.severity.ERROR)
local rtx_expert = ProtoExpert.new("metaroce.rtx.seen", "Retransmission", expert.group.SEQUENCE,
	expert.severity.NOTE)
local nack_expert = ProtoExpert.new("metaroce.nack.seen", "Negative acknowledgment",
	expert.group.RESPONSE_CODE, expert.severity.WARN)
proto.experts = { malformed_expert, rtx_expert, nack_expert }

local function malformed(tree, text)
	tree:add_proto_expert_info(malformed_expert, text)
end

-- Adds fields from a table of { key, size }, one behind the other from offset at. Returns the
-- offset behind the last, or nil (and says so) when the packet ends before.
local function add_all(tree, tvb, at, layout)
	for _, one in ipairs(layout) do
		local key, size = one[1], one[2]

		if at + size > tvb:len() then
			malformed(tree, "Ends before " .. key)
			return nil
		end
		tree:add(f[key], tvb(at, size))
		at = at + size
	end
	return at
end

local msgh = { { "msn", 4 }, { "rq_match", 4 }, { "offset", 4 }, { "message_size", 4 },
	{ "source_qp", 3 }, { "mflags", 1 } }
local move = { { "moved_path", 2 }, { "moved_epoch", 1 }, { "reserved", 1 },
	{ "moved_sequence", 4 } }
local bth = { { "opcode", 1 }, { "bth_flags", 1 }, { "pkey", 2 }, { "reserved", 1 },
	{ "target_qp", 3 }, { "bth_ackreq", 1 }, { "psn", 3 } }
local extensions = {
	reth = { { "address", 8 }, { "key", 4 }, { "length", 4 } },
	atomic = { { "address", 8 }, { "key", 4 }, { "swap_add", 8 }, { "compare", 8 } },
	aeth = { { "syndrome", 1 }, { "aeth_msn", 3 } },
	atomicack = { { "original", 8 } },
	imm = { { "immediate", 4 } },
}
local ackh = { { "pblks", 1 }, { "sblks", 1 }, { "planes", 1 }, { "reserved", 1 },
	{ "active_senders", 2 }, { "hint_epoch", 2 }, { "rx_bytes", 4 }, { "max_inflight", 4 } }
local pblk_tail = { { "pblk.next", 4 }, { "pblk.sack", 32 }, { "pblk.ecn_packets", 4 },
	{ "pblk.rx_packets", 4 }, { "pblk.ts_echo", 4 }, { "pblk.ack_delay", 2 },
	{ "reserved", 2 } }
local sblk = { { "sblk.qp", 3 }, { "sblk.syndrome", 1 }, { "sblk.msn", 4 } }
local nack = { { "nack.code", 1 }, { "nack.timer", 1 }, { "nack.path", 2 },
	{ "nack.sequence", 4 }, { "nack.qp", 3 }, { "reserved", 1 }, { "msn", 4 },
	{ "rq_match", 4 }, { "offset", 4 } }
local conn = { { "conn.op", 1 }, { "conn.version", 1 }, { "conn.paths", 2 },
	{ "conn.connection", 4 }, { "conn.cookie", 8 }, { "conn.address", 16 },
	{ "conn.rate", 4 }, { "conn.payload_max", 2 }, { "conn.sack_bits", 2 },
	{ "conn.features", 4 }, { "conn.planes", 1 }, { "conn.status", 1 }, { "reserved", 2 } }
local probe = { { "probe.id", 4 }, { "probe.tail", 4 }, { "probe.qp", 3 }, { "probe.kind", 1 },
	{ "probe.msn", 4 } }

-- Each body returns the offset of its end (nil: malformed) and words for the summary.
local body = {}

body[TYPE.DATA] = function(tree, tvb, at)
	local start = at

	at = add_all(tree, tvb, at, msgh)
	if at ~= nil and bit.band(tvb(1, 1):uint(), 0x08) ~= 0 then
		at = add_all(tree, tvb, at, move)
	end
	local opcode_at = at
	at = at ~= nil and add_all(tree, tvb, at, bth) or nil
	if at == nil then
		return nil
	end
	local opcode = tvb(opcode_at, 1):uint()
	local headers = opcode_headers[opcode]
	if headers == nil then
		malformed(tree, "Unknown opcode")
		return nil
	end
	local length = nil
	for _, name in ipairs(headers) do
		at = add_all(tree, tvb, at, extensions[name])
		if at == nil then
			return nil
		end
		if name == "reth" then
			length = tvb(at - 4, 4):uint()
		end
	end
	local size = tvb:reported_len() - at
	local offset, message = tvb(start + 8, 4):uint(), tvb(start + 12, 4):uint()
	tree:add(f.payload_size, size):set_generated()
	if tvb:len() > at then
		tree:add(f.payload, tvb(at))
	end
	if offset + size > message then
		malformed(tree, "Payload lies outside its message")
	end
	if (opcode == 0x0a or opcode == 0x0b) and length ~= size then
		malformed(tree, "RETH's length isn't the payload's")
	end
	return tvb:len(), string.format("%s, QP %d, message %d, %d bytes at %d of %d",
		opcode_names[opcode], tvb(opcode_at + 5, 3):uint(), tvb(start, 4):uint(), size, offset,
		message)
end

body[TYPE.ACK] = function(tree, tvb, at)
	local start = at

	at = add_all(tree, tvb, at, ackh)
	if at == nil then
		return nil
	end
	local pblks, sblks = tvb(start, 1):uint(), tvb(start + 1, 1):uint()
	local planes = tvb(start + 2, 1):uint()
	if pblks > PBLKS_MAX or sblks > SBLKS_MAX or planes > PLANES_MAX then
		malformed(tree, "Impossible counts")
		return nil
	end
	for plane = 0, planes - 1 do
		if at + 4 > tvb:len() then
			malformed(tree, "Ends before the shares")
			return nil
		end
		tree:add(f.share, tvb(at, 4)):prepend_text("Plane " .. plane .. ": ")
		at = at + 4
	end
	for _ = 1, pblks do
		if at + PBLK_SIZE > tvb:len() then
			malformed(tree, "Ends before its path blocks")
			return nil
		end
		local item = tree:add(f.pblk, tvb(at, PBLK_SIZE))
		item:set_text(string.format("Path block: path %d, next %d", tvb(at, 2):uint(),
			tvb(at + 4, 4):uint()))
		item:add(f["pblk.path"], tvb(at, 2))
		item:add(f["pblk.epoch"], tvb(at + 2, 1))
		local flags = item:add(f["pblk.flags"], tvb(at + 3, 1))
		for _, name in ipairs({ "gap", "duplicate", "probe_response", "epoch_crossed" }) do
			flags:add(f["pblk." .. name], tvb(at + 3, 1))
		end
		if tvb(at, 2):uint() >= PATHS_MAX then
			malformed(item, "Impossible path")
		end
		at = add_all(item, tvb, at + 4, pblk_tail)
	end
	for _ = 1, sblks do
		if at + SBLK_SIZE > tvb:len() then
			malformed(tree, "Ends before its stream blocks")
			return nil
		end
		local item = tree:add(f.sblk, tvb(at, SBLK_SIZE))
		item:set_text(string.format("Stream block: QP %d, complete before %d",
			tvb(at, 3):uint(), tvb(at + 4, 4):uint()))
		at = add_all(item, tvb, at, sblk)
	end
	return at, string.format("%d paths, %d streams", pblks, sblks)
end

body[TYPE.NACK] = function(tree, tvb, at)
	local code = at < tvb:len() and tvb(at, 1):uint() or 0

	at = add_all(tree, tvb, at, nack)
	tree:add_proto_expert_info(nack_expert)
	return at, nack_names[code] or string.format("code 0x%02x", code)
end

body[TYPE.CONN] = function(tree, tvb, at)
	local start = at

	at = add_all(tree, tvb, at, conn)
	if at == nil then
		return nil
	end
	local op, planes = tvb(start, 1):uint(), tvb(start + 44, 1):uint()
	if conn_names[op] == nil then
		malformed(tree, "Unknown operation")
	end
	if planes > PLANES_MAX then
		malformed(tree, "Impossible number of planes")
		return nil
	end
	for plane = 0, planes - 1 do
		if at + 16 > tvb:len() then
			malformed(tree, "Ends before its addresses")
			return nil
		end
		tree:add(f["conn.plane_address"], tvb(at, 16)):prepend_text("Plane " .. plane .. ": ")
		at = at + 16
	end
	return at, conn_names[op] or "?"
end

body[TYPE.PROBE] = function(tree, tvb, at)
	local start = at

	at = add_all(tree, tvb, at, probe)
	if at == nil then
		return nil
	end
	local kind = tvb(start + 11, 1):uint()
	if probe_names[kind] == nil then
		malformed(tree, "Unknown kind of probe")
	end
	return at, string.format("%s %d", probe_names[kind] or "?", tvb(start, 4):uint())
end

local function add_mch(tree, tvb)
	tree:add(f.version, tvb(0, 1))
	tree:add(f.type, tvb(0, 1))
	local flags = tree:add(f.flags, tvb(1, 1))
	for _, name in ipairs({ "rtx", "ackreq", "first", "last", "moved", "idle_after",
		"hint_limited", "reserved_flag" }) do
		flags:add(f[name], tvb(1, 1))
	end
	if bit.band(tvb(1, 1):uint(), 0x80) ~= 0 then
		flags:add_proto_expert_info(rtx_expert)
	end
	if bit.band(tvb(1, 1):uint(), 0x01) ~= 0 then
		malformed(flags, "Reserved flag is set")
	end
	return add_all(tree, tvb, 2, { { "path", 2 }, { "connection", 4 }, { "sequence", 4 },
		{ "tx_ts", 4 }, { "epoch", 1 }, { "plane", 1 }, { "backlog", 2 } })
end

function proto.dissector(tvb, pinfo, root)
	local tree = root:add(proto, tvb())

	pinfo.cols.protocol = "MetaRoCE"
	if tvb:len() < MCH_SIZE then
		malformed(tree, "No whole common header")
		return tvb:len()
	end
	local version, kind = bit.rshift(tvb(0, 1):uint(), 4), bit.band(tvb(0, 1):uint(), 0x0f)
	local at = add_mch(tree, tvb)
	if version ~= VERSION then
		malformed(tree, "Unknown version")
		return tvb:len()
	end
	if body[kind] == nil then
		malformed(tree, "Unknown type")
		return tvb:len()
	end
	if tvb(2, 2):uint() >= PATHS_MAX or tvb(17, 1):uint() >= PLANES_MAX then
		malformed(tree, "Impossible path or plane")
	end
	local stop, words = body[kind](tree, tvb, at)
	local text = string.format("%s path %d plane %d seq %d%s", type_names[kind],
		tvb(2, 2):uint(), tvb(17, 1):uint(), tvb(8, 4):uint(),
		words ~= nil and ": " .. words or "")
	if stop ~= nil and stop < tvb:len() then
		tree:add(f.trailer, tvb(stop))
		malformed(tree, "Bytes behind the end")
	end
	pinfo.cols.info = text
	tree:append_text(", " .. text)
	return tvb:len()
end

DissectorTable.get("udp.port"):add(UDP_PORT, proto)
