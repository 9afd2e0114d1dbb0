-- dsf.lua - Wireshark dissector for the fabric links of dsfemu: trains and the cells in them
--
-- usage: tshark -X lua_script:dsf.lua -r FILE
--    or: copy it to the personal Lua plugins folder (Help > About Wireshark > Folders)
--
-- The layout is that of src/fabric/cell.h. A train is the emulator's own envelope (one veth frame);
-- a cell is what the modelled network carries. Filters: dsf (trains), dsf.cell.* (cells), for
-- example  dsf.cell.kind == 1 && dsf.cell.destination == 3,  dsf.cell.congested == 1  or
-- dsf.malformed.

local ETHERTYPE = 0x88b5
local VERSION = 1
local TRAIN_HEADER = 32
local CELL_HEADER = 32
local CELL_MAX = 4096
local ETHERNET_HEADER = 14
local IPV6_HEADER = 40

local KIND = { DATA = 1, REQUEST = 2, GRANT = 3, REACH = 4, FILL = 5 }
local kind_names = {
	[KIND.DATA] = "data", [KIND.REQUEST] = "credit request", [KIND.GRANT] = "credit grant",
	[KIND.REACH] = "reachability", [KIND.FILL] = "fill"
}
local kind_order = { KIND.DATA, KIND.REQUEST, KIND.GRANT, KIND.REACH, KIND.FILL }
local class_names = { [0] = "nc", [1] = "rdma", [2] = "default" }

local train = Proto("dsf", "DSF train")

local f = {
	version = ProtoField.uint8("dsf.version", "Version"),
	flags = ProtoField.uint8("dsf.flags", "Flags", base.HEX),
	heard = ProtoField.bool("dsf.heard", "I hear you", 8, nil, 0x01),
	stop = ProtoField.bool("dsf.stop", "Send me no data", 8, nil, 0x02),
	cells = ProtoField.uint16("dsf.cells", "Cells"),
	bytes = ProtoField.uint16("dsf.bytes", "Bytes of cells"),
	source_switch = ProtoField.uint16("dsf.source_switch", "Source switch"),
	source_port = ProtoField.uint16("dsf.source_port", "Source port number"),
	departure = ProtoField.uint64("dsf.departure", "Departure, fabric time (ns)"),
	trailer = ProtoField.bytes("dsf.trailer", "Bytes behind the last cell"),

	cell = ProtoField.none("dsf.cell", "Cell"),
	kind = ProtoField.uint8("dsf.cell.kind", "Kind", base.DEC, kind_names),
	cell_flags = ProtoField.uint8("dsf.cell.flags", "Flags", base.HEX),
	last = ProtoField.bool("dsf.cell.last", "Last cell of its packet", 8, nil, 0x01),
	congested = ProtoField.bool("dsf.cell.congested", "Met a queue over its mark", 8, nil, 0x02),
	corrupt = ProtoField.bool("dsf.cell.corrupt", "Corrupted on the wire", 8, nil, 0x04),
	ce = ProtoField.bool("dsf.cell.ce", "Packet was marked at its VOQ", 8, nil, 0x08),
	size = ProtoField.uint16("dsf.cell.size", "Payload size"),
	present = ProtoField.uint16("dsf.cell.present", "Payload bytes present"),
	source = ProtoField.uint16("dsf.cell.source", "Source switch"),
	destination = ProtoField.uint16("dsf.cell.destination", "Destination switch"),
	class = ProtoField.uint8("dsf.cell.class", "Class", base.DEC, class_names),
	index = ProtoField.uint8("dsf.cell.index", "Index in its packet"),
	system_port = ProtoField.uint32("dsf.cell.system_port", "System port"),
	link_sequence = ProtoField.uint32("dsf.cell.link_sequence", "Link sequence"),
	packet_sequence = ProtoField.uint32("dsf.cell.packet_sequence", "Packet sequence"),
	packet_size = ProtoField.uint16("dsf.cell.packet_size", "Packet size"),
	packet_present = ProtoField.uint16("dsf.cell.packet_present", "Packet bytes present"),
	epoch = ProtoField.uint32("dsf.cell.epoch", "Epoch of the VOQ"),
	waiting = ProtoField.uint32("dsf.cell.waiting", "Waiting (bytes)"),
	total = ProtoField.uint64("dsf.cell.total", "Running total (bytes)"),
	reserved = ProtoField.bytes("dsf.cell.reserved", "Unused"),
	payload = ProtoField.bytes("dsf.cell.payload", "Payload"),

	reach_first = ProtoField.uint16("dsf.reach.first", "First switch"),
	reach_drained = ProtoField.bool("dsf.reach.drained", "The sender's end is drained", 16, nil, 0x8000),
	reach_has_withheld = ProtoField.bool("dsf.reach.has_withheld", "Withheld follow", 16, nil, 0x4000),
	reach_has_resort = ProtoField.bool("dsf.reach.has_resort", "Last resorts follow", 16, nil, 0x2000),
	reach_switches = ProtoField.uint16("dsf.reach.switches", "Switches in each bitmap", base.DEC, nil, 0x1fff),
	reach_bitmap = ProtoField.bytes("dsf.reach.bitmap", "Bitmap"),
	reach_switch = ProtoField.uint16("dsf.reach.switch", "Reaches switch"),
	reach_withheld_bitmap = ProtoField.bytes("dsf.reach.withheld_bitmap", "Withheld"),
	reach_withheld = ProtoField.uint16("dsf.reach.withheld", "Withholds switch"),
	reach_resort_bitmap = ProtoField.bytes("dsf.reach.resort_bitmap", "Last resorts"),
	reach_resort = ProtoField.uint16("dsf.reach.resort", "Last resort for switch"),

	inner_target_mac = ProtoField.ether("dsf.inner.target_mac", "Packet: target MAC"),
	inner_source_mac = ProtoField.ether("dsf.inner.source_mac", "Packet: source MAC"),
	inner_source = ProtoField.ipv6("dsf.inner.source", "Packet: source"),
	inner_destination = ProtoField.ipv6("dsf.inner.destination", "Packet: destination"),
	inner_dscp = ProtoField.uint8("dsf.inner.dscp", "Packet: DSCP"),
	inner_ecn = ProtoField.uint8("dsf.inner.ecn", "Packet: ECN"),
	inner_next_header = ProtoField.uint8("dsf.inner.next_header", "Packet: next header"),
	inner_hop_limit = ProtoField.uint8("dsf.inner.hop_limit", "Packet: hop limit"),
}

local list = {}
for _, field in pairs(f) do
	list[#list + 1] = field
end
train.fields = list

local e = {
	malformed = ProtoExpert.new("dsf.malformed", "Malformed", expert.group.MALFORMED,
		expert.severity.ERROR),
	trailer = ProtoExpert.new("dsf.trailer.present", "Bytes behind the last cell",
		expert.group.PROTOCOL, expert.severity.NOTE),
	cut = ProtoExpert.new("dsf.cut", "Frame was cut short by the capture",
		expert.group.UNDECODED, expert.severity.NOTE),
	corrupt = ProtoExpert.new("dsf.cell.corrupt.seen", "Cell was corrupted on the wire",
		expert.group.CHECKSUM, expert.severity.WARN),
	congested = ProtoExpert.new("dsf.cell.congested.seen", "Cell met a queue over its mark",
		expert.group.SEQUENCE, expert.severity.CHAT),
	deaf = ProtoExpert.new("dsf.deaf", "Sender doesn't hear its peer on this link",
		expert.group.SEQUENCE, expert.severity.NOTE),
}
train.experts = { e.malformed, e.trailer, e.cut, e.corrupt, e.congested, e.deaf }

train.prefs.packets = Pref.bool("Dissect packets that fit in one cell", false,
	"Hand packets that are whole in a single cell to the Ethernet dissector")

local ethernet = Dissector.get("eth_withoutfcs")

local function malformed(tree, text)
	tree:add_proto_expert_info(e.malformed, text)
end

-- Addresses of the packet whose first cell this is, without the help of other dissectors: most
-- packets are in several cells, and those would call a part of a packet malformed.
local function add_inner(tree, payload)
	if payload:len() < ETHERNET_HEADER + IPV6_HEADER or payload(12, 2):uint() ~= 0x86dd then
		return
	end
	tree:add(f.inner_target_mac, payload(0, 6))
	tree:add(f.inner_source_mac, payload(6, 6))
	tree:add(f.inner_dscp, payload(14, 2), payload(14, 2):bitfield(4, 6))
	tree:add(f.inner_ecn, payload(15, 1), payload(14, 2):bitfield(10, 2))
	tree:add(f.inner_next_header, payload(20, 1))
	tree:add(f.inner_hop_limit, payload(21, 1))
	tree:add(f.inner_source, payload(22, 16))
	tree:add(f.inner_destination, payload(38, 16))
end

-- A bitmap of switches at offset; returns how many are in it.
local function add_switches(tree, payload, offset, first, switches, bitmap_field, switch_field)
	local bitmap = tree:add(bitmap_field, payload(offset, math.floor((switches + 7) / 8)))
	local count = 0
	for i = 0, switches - 1 do
		local at = offset + math.floor(i / 8)

		if bit.band(bit.rshift(payload(at, 1):uint(), i % 8), 1) == 1 then
			bitmap:add(switch_field, payload(at, 1), first + i)
			count = count + 1
		end
	end
	return count
end

local function add_reach(tree, payload)
	if payload:len() < 4 then
		malformed(tree, "Reachability cell without its header")
		return
	end
	local first, flags = payload(0, 2):uint(), payload(2, 2):uint()
	local switches = bit.band(flags, 0x1fff)
	local bytes, at = math.floor((switches + 7) / 8), 4
	local sets = {
		{ 0, f.reach_bitmap, f.reach_switch, " switches reached" },
		{ 0x4000, f.reach_withheld_bitmap, f.reach_withheld, " withheld" },
		{ 0x2000, f.reach_resort_bitmap, f.reach_resort, " by last resort" },
	}

	tree:add(f.reach_first, payload(0, 2))
	tree:add(f.reach_drained, payload(2, 2))
	tree:add(f.reach_has_withheld, payload(2, 2))
	tree:add(f.reach_has_resort, payload(2, 2))
	tree:add(f.reach_switches, payload(2, 2))
	if bit.band(flags, 0x8000) ~= 0 then
		tree:append_text(", drained")
	end
	for _, set in ipairs(sets) do
		if set[1] == 0 or bit.band(flags, set[1]) ~= 0 then
			if at + bytes > payload:len() then
				malformed(tree, "Bitmap runs past the end of its cell")
				return
			end
			if bytes > 0 then
				local count = add_switches(tree, payload, at, first, switches, set[2], set[3])
				tree:append_text(", " .. count .. set[4])
			end
			at = at + bytes
		end
	end
	if at < payload:len() then
		malformed(tree, "Bytes behind the last bitmap")
	end
end

local function add_flags(tree, cell)
	local flags = tree:add(f.cell_flags, cell(1, 1))

	flags:add(f.last, cell(1, 1))
	local congested = flags:add(f.congested, cell(1, 1))
	local corrupt = flags:add(f.corrupt, cell(1, 1))
	flags:add(f.ce, cell(1, 1))
	local value = cell(1, 1):uint()
	if bit.band(value, 0x02) ~= 0 then
		congested:add_proto_expert_info(e.congested)
	end
	if bit.band(value, 0x04) ~= 0 then
		corrupt:add_proto_expert_info(e.corrupt)
	end
	return value
end

local function add_credit(tree, cell, kind)
	tree:add(f.epoch, cell(2, 4))
	if kind == KIND.REQUEST then
		tree:add(f.waiting, cell(20, 4))
	else
		tree:add(f.reserved, cell(20, 4))
	end
	tree:add(f.total, cell(24, 8))
	tree:append_text(string.format(", switch %d to %d, system port %d, total %s",
		cell(6, 2):uint(), cell(8, 2):uint(), cell(12, 4):uint(),
		tostring(cell(24, 8):uint64())))
end

local function add_data(tree, cell, pinfo, root, value)
	local packet_size, index = cell(24, 2):uint(), cell(11, 1):uint()
	local payload = cell:len() > CELL_HEADER and cell(CELL_HEADER) or nil

	tree:append_text(string.format(", switch %d to %d, system port %d, packet %d cell %d%s",
		cell(6, 2):uint(), cell(8, 2):uint(), cell(12, 4):uint(), cell(20, 4):uint(), index,
		bit.band(value, 1) ~= 0 and " (last)" or ""))
	if cell(2, 2):uint() > packet_size then
		malformed(tree, "Cell is larger than its packet")
	end
	if cell(26, 2):uint() > packet_size then
		malformed(tree, "More bytes of the packet present than it has")
	end
	if payload == nil or index ~= 0 then
		return
	end
	add_inner(tree, payload)
	if train.prefs.packets and payload:len() == packet_size then
		ethernet:call(payload:tvb(), pinfo, root)
	end
end

-- Dissects the cell at the start of rest; returns its kind and the bytes it takes, or nil when what
-- follows can't be found.
local function add_cell(rest, number, tree, pinfo, root)
	if rest:len() < CELL_HEADER then
		malformed(tree, "Cell " .. number .. " has no whole header")
		return nil
	end
	local kind = rest(0, 1):uint()
	local credit = kind == KIND.REQUEST or kind == KIND.GRANT
	local present = credit and 0 or rest(4, 2):uint()
	local size = CELL_HEADER + present
	local whole = math.min(size, rest:len())
	local cell = rest(0, whole)
	local item = tree:add(f.cell, cell)

	item:set_text("Cell " .. number .. ": " .. (kind_names[kind] or "unknown kind " .. kind))
	item:add(f.kind, cell(0, 1))
	local value = add_flags(item, cell)
	item:add(f.source, cell(6, 2))
	item:add(f.destination, cell(8, 2))
	item:add(f.class, cell(10, 1))
	item:add(f.index, cell(11, 1))
	item:add(f.system_port, cell(12, 4))
	item:add(f.link_sequence, cell(16, 4))
	if kind_names[kind] == nil then
		malformed(item, "Unknown kind of cell")
		return nil
	end
	if class_names[cell(10, 1):uint()] == nil then
		malformed(item, "Unknown class")
	end
	if credit then
		add_credit(item, cell, kind)
		return kind, size
	end
	item:add(f.size, cell(2, 2))
	item:add(f.present, cell(4, 2))
	item:add(f.packet_sequence, cell(20, 4))
	item:add(f.packet_size, cell(24, 2))
	item:add(f.packet_present, cell(26, 2))
	item:add(f.epoch, cell(28, 4))
	if present > cell(2, 2):uint() or cell(2, 2):uint() > CELL_MAX then
		malformed(item, "Impossible payload size")
		return nil
	end
	if whole < size then
		malformed(item, "Payload runs past the end of the train")
		return nil
	end
	if present > 0 then
		item:add(f.payload, cell(CELL_HEADER))
	end
	if kind == KIND.DATA then
		add_data(item, cell, pinfo, root, value)
	elseif kind == KIND.REACH and present > 0 then
		add_reach(item, cell(CELL_HEADER))
	end
	return kind, size
end

local function add_header(tvb, tree)
	local item

	item = tree:add(f.version, tvb(0, 1))
	if tvb(0, 1):uint() ~= VERSION then
		malformed(item, "Unknown version")
		return false
	end
	item = tree:add(f.flags, tvb(1, 1))
	local heard = item:add(f.heard, tvb(1, 1))
	item:add(f.stop, tvb(1, 1))
	if bit.band(tvb(1, 1):uint(), 1) == 0 then
		heard:add_proto_expert_info(e.deaf)
	end
	tree:add(f.cells, tvb(2, 2))
	tree:add(f.bytes, tvb(4, 2))
	tree:add(f.source_switch, tvb(6, 2))
	tree:add(f.source_port, tvb(8, 2))
	tree:add(f.departure, tvb(10, 8))
	return true
end

local function summary(counts)
	local words = {}

	for _, kind in ipairs(kind_order) do
		if counts[kind] ~= nil then
			words[#words + 1] = counts[kind] .. " " .. kind_names[kind]
		end
	end
	return #words > 0 and " (" .. table.concat(words, ", ") .. ")" or ""
end

-- The buffer starts behind the EtherType, so offsets here are those of cell.h less 14.
function train.dissector(tvb, pinfo, root)
	local header = TRAIN_HEADER - ETHERNET_HEADER
	local tree = root:add(train, tvb())
	local counts = {}

	pinfo.cols.protocol = "DSF"
	if tvb:len() < header then
		malformed(tree, "Train has no whole header")
		return tvb:len()
	end
	if not add_header(tvb, tree) then
		return tvb:len()
	end
	local cells, bytes = tvb(2, 2):uint(), tvb(4, 2):uint()
	local at, stop, number = header, header + bytes, 0

	if stop > tvb:reported_len() then
		malformed(tree, "Train is shorter than its header says")
		stop = tvb:reported_len()
	end
	if stop > tvb:len() then
		tree:add_proto_expert_info(e.cut)
		stop = tvb:len()
	end
	while at < stop do
		local kind, size = add_cell(tvb(at, stop - at), number, tree, pinfo, root)

		if kind == nil then
			break
		end
		counts[kind] = (counts[kind] or 0) + 1
		number = number + 1
		at = at + size
	end
	if at == header + bytes and number ~= cells then
		malformed(tree, string.format("Header says %d cells, %d found", cells, number))
	end
	if tvb:len() > header + bytes then
		tree:add(f.trailer, tvb(header + bytes)):add_proto_expert_info(e.trailer)
	end
	local text = string.format("Train, switch %d port %d, %d cells%s", tvb(6, 2):uint(),
		tvb(8, 2):uint(), cells, summary(counts))
	pinfo.cols.info = text
	tree:append_text(": " .. text)
	return tvb:len()
end

DissectorTable.get("ethertype"):add(ETHERTYPE, train)
