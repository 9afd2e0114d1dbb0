-- fsdb.lua - Wireshark dissector for FSDB, the sessions between dsfemu's interface nodes
--
-- usage: tshark -X lua_script:fsdb.lua -r FILE
--
-- The layout is that of src/fsdb/wire.h (our own: the published text gives what is said, not
-- bytes), on TCP port 5957. Filters: fsdb.type == 5, fsdb.revision > 7, fsdb.record.kind == 3,
-- fsdb.record.system_port == 65, fsdb.record.address == fd5f::2, fsdb.malformed, …

local TCP_PORT = 5957
local VERSION = 1
local HEADER_SIZE = 4
local MESSAGE_MAX = 4096
local MAGIC = 0x46534442

local TYPE = { HELLO = 1, SUBSCRIBE = 2, SYNC = 3, SYNCED = 4, UPDATE = 5, STATE = 6,
	HEARTBEAT = 7, GOODBYE = 8 }
local type_names = {}
for name, number in pairs(TYPE) do
	type_names[number] = name
end
-- Bodies without records: how many bytes.
local body_sizes = { [1] = 8, [2] = 0, [3] = 8, [4] = 4, [6] = 1, [7] = 0, [8] = 1 }
local kind_names = { [1] = "port", [2] = "interface", [3] = "neighbor" }
-- Sizes behind a record's key, by operation (remove, set) and kind.
local field_sizes = { [0] = { 0, 0, 16 }, [1] = { 10, 26, 31 } }
local scope_names = { [0] = "GLOBAL", "LOCAL" }
local state_names = { [0] = "incomplete", "reachable", "static" }
local goodbye_names = { [0] = "restart", "exit" }

local proto = Proto("fsdb", "FSDB")

local f = {}
local function field(key, make, ...)
	f[key] = make("fsdb." .. key, ...)
end

field("size", ProtoField.uint16, "Size")
field("version", ProtoField.uint8, "Version")
field("type", ProtoField.uint8, "Type", base.DEC, type_names)
field("magic", ProtoField.uint32, "Magic", base.HEX)
field("id", ProtoField.uint32, "Switch")
field("revision", ProtoField.uint64, "Revision")
field("records", ProtoField.uint32, "Records")
field("subscribed", ProtoField.bool, "Subscription is connected")
field("reason", ProtoField.uint8, "Reason", base.DEC, goodbye_names)
field("record", ProtoField.none, "Record")
field("record.set", ProtoField.bool, "Set")
field("record.kind", ProtoField.uint8, "Kind", base.DEC, kind_names)
field("record.system_port", ProtoField.uint32, "System port")
field("record.scope", ProtoField.uint8, "Scope", base.DEC, scope_names)
field("record.up", ProtoField.bool, "Up")
field("record.rate", ProtoField.uint64, "Rate (bit/s)")
field("record.prefix", ProtoField.uint8, "Prefix length")
field("record.mtu", ProtoField.uint16, "MTU")
field("record.mac", ProtoField.ether, "MAC")
field("record.address", ProtoField.ipv6, "Address")
field("record.state", ProtoField.uint8, "State", base.DEC, state_names)
field("record.since", ProtoField.uint64, "Resolved at (ns of fabric time)")
proto.fields = f

local malformed = ProtoExpert.new(
	"fsdb.malformed", "Malformed FSDB message", expert.group.MALFORMED, expert.severity.ERROR)
proto.experts = { malformed }

local function wrong(tree, why)
	tree:add_proto_expert_info(malformed, why)
end

-- What is behind the key of a record that is set.
local readers = {
	function(b, tree)
		tree:add(f["record.scope"], b(0, 1))
		tree:add(f["record.up"], b(1, 1))
		tree:add(f["record.rate"], b(2, 8))
		return b(0, 1):uint() <= 1 and b(1, 1):uint() <= 1
	end,
	function(b, tree)
		tree:add(f["record.scope"], b(0, 1))
		tree:add(f["record.prefix"], b(1, 1))
		tree:add(f["record.mtu"], b(2, 2))
		tree:add(f["record.mac"], b(4, 6))
		tree:add(f["record.address"], b(10, 16))
		return b(0, 1):uint() <= 1 and b(1, 1):uint() <= 128
	end,
	function(b, tree)
		tree:add(f["record.state"], b(0, 1))
		tree:add(f["record.mac"], b(1, 6))
		tree:add(f["record.address"], b(7, 16))
		tree:add(f["record.since"], b(23, 8))
		return b(0, 1):uint() <= 2
	end
}

-- Records to the end; how many there were, nil when they are no records.
local function read_records(b, at, tree)
	local count = 0
	while at < b:len() do
		local left = b:len() - at
		local operation, kind = b(at, 1):uint(), left > 1 and b(at + 1, 1):uint() or 0
		if left < 6 or operation > 1 or kind < 1 or kind > 3 then
			return nil
		end
		local size = 6 + field_sizes[operation][kind]
		if left < size then
			return nil
		end
		local sub = tree:add(f["record"], b(at, size))
		sub:append_text(string.format(": %s %s at %u", operation == 1 and "set" or "remove",
			kind_names[kind], b(at + 2, 4):uint()))
		sub:add(f["record.set"], b(at, 1))
		sub:add(f["record.kind"], b(at + 1, 1))
		sub:add(f["record.system_port"], b(at + 2, 4))
		if operation == 1 then
			if not readers[kind](b(at + 6, size - 6), sub) then
				wrong(sub, "a field has an impossible value")
			end
		elseif kind == 3 then
			sub:add(f["record.address"], b(at + 6, 16))
		end
		at = at + size
		count = count + 1
	end
	return count
end

local function read_body(b, kind, tree)
	if kind == TYPE.HELLO then
		tree:add(f["magic"], b(4, 4))
		tree:add(f["id"], b(8, 4))
		if b(4, 4):uint() ~= MAGIC then
			wrong(tree, "another magic")
		end
	elseif kind == TYPE.SYNC then
		tree:add(f["revision"], b(4, 8))
	elseif kind == TYPE.SYNCED then
		tree:add(f["records"], b(4, 4))
	elseif kind == TYPE.STATE then
		tree:add(f["subscribed"], b(4, 1))
	elseif kind == TYPE.GOODBYE then
		tree:add(f["reason"], b(4, 1))
	elseif kind == TYPE.UPDATE then
		tree:add(f["revision"], b(4, 8))
		if read_records(b, 12, tree) == nil then
			wrong(tree, "no record")
		end
	end
end

local function message_size(b, _, at)
	local size = b(at, 2):uint()
	return (size < HEADER_SIZE or size > MESSAGE_MAX) and b:len() - at or size
end

local function dissect_message(b, pinfo, root)
	local tree = root:add(proto, b())
	local size = b(0, 2):uint()
	tree:add(f["size"], b(0, 2))
	if size ~= b:len() then
		wrong(tree, "no message has that size")
		return b:len()
	end
	local kind = b(3, 1):uint()
	local name = type_names[kind]
	tree:add(f["version"], b(2, 1))
	tree:add(f["type"], b(3, 1))
	if b(2, 1):uint() ~= VERSION or name == nil then
		wrong(tree, "unknown version or type")
		return b:len()
	end
	tree:append_text(", " .. name)
	pinfo.cols.info:append(" " .. name)
	local body = size - HEADER_SIZE
	if body_sizes[kind] ~= nil and body_sizes[kind] ~= body or kind == TYPE.UPDATE and body < 8 then
		wrong(tree, "too short or too long")
		return b:len()
	end
	read_body(b, kind, tree)
	return b:len()
end

function proto.dissector(buffer, pinfo, root)
	pinfo.cols.protocol = "FSDB"
	dissect_tcp_pdus(buffer, root, HEADER_SIZE, message_size, dissect_message)
	return buffer:len()
end

DissectorTable.get("tcp.port"):add(TCP_PORT, proto)
