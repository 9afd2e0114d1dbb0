# One convenience library per folder; one line per source with its header. A folder that has no
# sources yet builds an empty library, so adding one line is all it takes.

noinst_LTLIBRARIES += libbase.la
libbase_la_SOURCES =
libbase_la_SOURCES += src/base/address.c src/base/address.h
libbase_la_SOURCES += src/base/bitset.h
libbase_la_SOURCES += src/base/cursor.h
libbase_la_SOURCES += src/base/draw.c src/base/draw.h
libbase_la_SOURCES += src/base/err.c src/base/err.h
libbase_la_SOURCES += src/base/hash.c src/base/hash.h
libbase_la_SOURCES += src/base/heap.c src/base/heap.h
libbase_la_SOURCES += src/base/histogram.c src/base/histogram.h
libbase_la_SOURCES += src/base/memory.h
libbase_la_SOURCES += src/base/pool.c src/base/pool.h
libbase_la_SOURCES += src/base/rng.c src/base/rng.h
libbase_la_SOURCES += src/base/time.h
libbase_la_SOURCES += src/base/trace.c src/base/trace.h
libbase_la_SOURCES += src/base/units.c src/base/units.h
libbase_la_SOURCES += src/base/utf8.c src/base/utf8.h

noinst_LTLIBRARIES += libfabric.la
libfabric_la_SOURCES =
libfabric_la_SOURCES += src/fabric/balance.c src/fabric/balance.h
libfabric_la_SOURCES += src/fabric/cell.c src/fabric/cell.h
libfabric_la_SOURCES += src/fabric/credit.c src/fabric/credit.h
libfabric_la_SOURCES += src/fabric/loss.c src/fabric/loss.h
libfabric_la_SOURCES += src/fabric/packet.c src/fabric/packet.h
libfabric_la_SOURCES += src/fabric/port.c src/fabric/port.h
libfabric_la_SOURCES += src/fabric/pressure.c src/fabric/pressure.h
libfabric_la_SOURCES += src/fabric/reach.c src/fabric/reach.h
libfabric_la_SOURCES += src/fabric/reach_cell.c src/fabric/reach_cell.h
libfabric_la_SOURCES += src/fabric/reasm.c src/fabric/reasm.h
libfabric_la_SOURCES += src/fabric/spray.c src/fabric/spray.h
libfabric_la_SOURCES += src/fabric/voq.c src/fabric/voq.h

noinst_LTLIBRARIES += libip.la
libip_la_SOURCES =
libip_la_SOURCES += src/ip/hops.c src/ip/hops.h
libip_la_SOURCES += src/ip/icmp.c src/ip/icmp.h
libip_la_SOURCES += src/ip/ndp.c src/ip/ndp.h
libip_la_SOURCES += src/ip/ndp_wire.c src/ip/ndp_wire.h
libip_la_SOURCES += src/ip/neighbor.c src/ip/neighbor.h
libip_la_SOURCES += src/ip/packet.c src/ip/packet.h
libip_la_SOURCES += src/ip/route.c src/ip/route.h

noinst_LTLIBRARIES += libmetaroce.la
libmetaroce_la_SOURCES =
libmetaroce_la_SOURCES += src/metaroce/ack.c
libmetaroce_la_SOURCES += src/metaroce/cc.c src/metaroce/cc.h
libmetaroce_la_SOURCES += src/metaroce/conn.c src/metaroce/conn.h
libmetaroce_la_SOURCES += src/metaroce/input.c
libmetaroce_la_SOURCES += src/metaroce/list.h
libmetaroce_la_SOURCES += src/metaroce/loss.c
libmetaroce_la_SOURCES += src/metaroce/memory.h
libmetaroce_la_SOURCES += src/metaroce/metaroce.c src/metaroce/metaroce.h
libmetaroce_la_SOURCES += src/metaroce/output.c
libmetaroce_la_SOURCES += src/metaroce/path.c
libmetaroce_la_SOURCES += src/metaroce/qp.c
libmetaroce_la_SOURCES += src/metaroce/sack.c src/metaroce/sack.h
libmetaroce_la_SOURCES += src/metaroce/share.c src/metaroce/share.h
libmetaroce_la_SOURCES += src/metaroce/spray.c
libmetaroce_la_SOURCES += src/metaroce/wire.c src/metaroce/wire.h

noinst_LTLIBRARIES += libbgp.la
libbgp_la_SOURCES =
libbgp_la_SOURCES += src/bgp/attributes.c src/bgp/attributes.h
libbgp_la_SOURCES += src/bgp/bgp.c src/bgp/bgp.h
libbgp_la_SOURCES += src/bgp/decide.c
libbgp_la_SOURCES += src/bgp/export.c
libbgp_la_SOURCES += src/bgp/out.c
libbgp_la_SOURCES += src/bgp/peer.c
libbgp_la_SOURCES += src/bgp/policy.c src/bgp/policy.h
libbgp_la_SOURCES += src/bgp/rib.c
libbgp_la_SOURCES += src/bgp/session.c src/bgp/session.h
libbgp_la_SOURCES += src/bgp/speaker.h
libbgp_la_SOURCES += src/bgp/store.c src/bgp/store.h
libbgp_la_SOURCES += src/bgp/table.c src/bgp/table.h
libbgp_la_SOURCES += src/bgp/update.c src/bgp/update.h
libbgp_la_SOURCES += src/bgp/wire.c src/bgp/wire.h

noinst_LTLIBRARIES += libfsdb.la
libfsdb_la_SOURCES =
libfsdb_la_SOURCES += src/fsdb/import.c src/fsdb/import.h
libfsdb_la_SOURCES += src/fsdb/mesh.c src/fsdb/mesh.h
libfsdb_la_SOURCES += src/fsdb/publish.c src/fsdb/publish.h
libfsdb_la_SOURCES += src/fsdb/session.c src/fsdb/session.h
libfsdb_la_SOURCES += src/fsdb/table.c src/fsdb/table.h
libfsdb_la_SOURCES += src/fsdb/wire.c src/fsdb/wire.h

noinst_LTLIBRARIES += libworkload.la
libworkload_la_SOURCES =
libworkload_la_SOURCES += src/workload/pattern.c src/workload/pattern.h
libworkload_la_SOURCES += src/workload/spec.h

noinst_LTLIBRARIES += libtopo.la
libtopo_la_SOURCES =
libtopo_la_SOURCES += src/topo/bgp.c src/topo/bgp.h
libtopo_la_SOURCES += src/topo/bgp_file.c
libtopo_la_SOURCES += src/topo/check.c
libtopo_la_SOURCES += src/topo/derive.c
libtopo_la_SOURCES += src/topo/draft.c src/topo/draft.h
libtopo_la_SOURCES += src/topo/draw.c src/topo/draw.h
libtopo_la_SOURCES += src/topo/drill.c src/topo/drill.h
libtopo_la_SOURCES += src/topo/drill_file.c
libtopo_la_SOURCES += src/topo/drill_keys.c src/topo/drill_keys.h
libtopo_la_SOURCES += src/topo/drill_random.c
libtopo_la_SOURCES += src/topo/error.c src/topo/error.h
libtopo_la_SOURCES += src/topo/expand.c
libtopo_la_SOURCES += src/topo/explicit.c
libtopo_la_SOURCES += src/topo/external.c
libtopo_la_SOURCES += src/topo/file.c src/topo/file.h
libtopo_la_SOURCES += src/topo/finish.c
libtopo_la_SOURCES += src/topo/fixed.c src/topo/fixed.h
libtopo_la_SOURCES += src/topo/keys.c src/topo/keys.h
libtopo_la_SOURCES += src/topo/locate.c src/topo/locate.h
libtopo_la_SOURCES += src/topo/memory.c src/topo/memory.h
libtopo_la_SOURCES += src/topo/model.c src/topo/model.h
libtopo_la_SOURCES += src/topo/number.c
libtopo_la_SOURCES += src/topo/orders.c
libtopo_la_SOURCES += src/topo/plan.c src/topo/plan.h
libtopo_la_SOURCES += src/topo/pod.c src/topo/pod.h
libtopo_la_SOURCES += src/topo/print.c
libtopo_la_SOURCES += src/topo/reach.c src/topo/reach.h
libtopo_la_SOURCES += src/topo/settings.c
libtopo_la_SOURCES += src/topo/value.c src/topo/value.h

# Installed, and found from the build root beside the program.
topologiesdir = $(pkgdatadir)/topologies
dist_topologies_DATA =
dist_topologies_DATA += topologies/clos.json
dist_topologies_DATA += topologies/bird.json
dist_topologies_DATA += topologies/dsfemu.schema.json
dist_topologies_DATA += topologies/figures.json
dist_topologies_DATA += topologies/frr.json
dist_topologies_DATA += topologies/l1-zone.json
dist_topologies_DATA += topologies/l2-zone.json
dist_topologies_DATA += topologies/meta-l1.json
dist_topologies_DATA += topologies/meta-l2.json
dist_topologies_DATA += topologies/meta-region.json
dist_topologies_DATA += topologies/mini.json
dist_topologies_DATA += topologies/region.json
drillsdir = $(pkgdatadir)/drills
dist_drills_DATA =
dist_drills_DATA += drills/corruption.json
dist_drills_DATA += drills/drill.schema.json
dist_drills_DATA += drills/fdsw-drain.json
dist_drills_DATA += drills/fdsw-frozen.json
dist_drills_DATA += drills/fdsw-killed.json
dist_drills_DATA += drills/gpu-link-down.json
dist_drills_DATA += drills/gpu-link-gray.json
dist_drills_DATA += drills/gray-loss.json
dist_drills_DATA += drills/host-killed.json
dist_drills_DATA += drills/impaired-link.json
dist_drills_DATA += drills/link-down.json
dist_drills_DATA += drills/link-flap.json
dist_drills_DATA += drills/one-way-silence.json
dist_drills_DATA += drills/port-drain.json
dist_drills_DATA += drills/rdsw-drain.json
dist_drills_DATA += drills/rdsw-drained-by-links.json
dist_drills_DATA += drills/rdsw-frozen.json
dist_drills_DATA += drills/rdsw-isolated.json
dist_drills_DATA += drills/rdsw-killed.json
dist_drills_DATA += drills/storm.json
wiresharkdir = $(pkgdatadir)/wireshark
dist_wireshark_DATA = scripts/wireshark/dsf.lua scripts/wireshark/fsdb.lua \
	scripts/wireshark/metaroce.lua

noinst_LTLIBRARIES += libnode.la
libnode_la_SOURCES =
libnode_la_SOURCES += src/node/cabling.c
libnode_la_SOURCES += src/node/cells.c src/node/cells.h
libnode_la_SOURCES += src/node/cells_view.c
libnode_la_SOURCES += src/node/drill.c src/node/drill.h
libnode_la_SOURCES += src/node/drill_fault.c
libnode_la_SOURCES += src/node/drill_look.c src/node/drill_state.h
libnode_la_SOURCES += src/node/edge.c src/node/edge.h
libnode_la_SOURCES += src/node/edge_view.c
libnode_la_SOURCES += src/node/ethernet.c src/node/ethernet.h
libnode_la_SOURCES += src/node/fabric_node.c src/node/fabric_node.h
libnode_la_SOURCES += src/node/forward.c
libnode_la_SOURCES += src/node/host.c src/node/host.h
libnode_la_SOURCES += src/node/host_flow.c
libnode_la_SOURCES += src/node/host_input.c
libnode_la_SOURCES += src/node/host_port.c
libnode_la_SOURCES += src/node/host_state.h
libnode_la_SOURCES += src/node/host_udp.c
libnode_la_SOURCES += src/node/host_view.c
libnode_la_SOURCES += src/node/interface_node.c src/node/interface_node.h
libnode_la_SOURCES += src/node/interface_view.c
libnode_la_SOURCES += src/node/node.c src/node/node.h
libnode_la_SOURCES += src/node/queue.c src/node/queue.h
libnode_la_SOURCES += src/node/report.c src/node/report.h
libnode_la_SOURCES += src/node/routed.c src/node/routed.h
libnode_la_SOURCES += src/node/router.c src/node/router.h
libnode_la_SOURCES += src/node/router_view.c
libnode_la_SOURCES += src/node/row.h
libnode_la_SOURCES += src/node/routing.c src/node/routing.h
libnode_la_SOURCES += src/node/routing_config.c
libnode_la_SOURCES += src/node/routing_expect.c
libnode_la_SOURCES += src/node/routing_state.h
libnode_la_SOURCES += src/node/routing_stream.c
libnode_la_SOURCES += src/node/routing_view.c
libnode_la_SOURCES += src/node/sessions.c
libnode_la_SOURCES += src/node/skew.c src/node/skew.h

noinst_LTLIBRARIES += libview.la
libview_la_SOURCES =
libview_la_SOURCES += src/view/drill.c src/view/drill.h
libview_la_SOURCES += src/view/explain.c src/view/explain.h
libview_la_SOURCES += src/view/json.c src/view/json.h
libview_la_SOURCES += src/view/read.c src/view/read.h
libview_la_SOURCES += src/view/report.c src/view/report.h
libview_la_SOURCES += src/view/rows.c src/view/rows.h
libview_la_SOURCES += src/view/show.c src/view/show.h
libview_la_SOURCES += src/view/skew.c src/view/skew.h
libview_la_SOURCES += src/view/table.c src/view/table.h

noinst_LTLIBRARIES += libsim.la
libsim_la_SOURCES =
libsim_la_SOURCES += src/sim/drill.c src/sim/drill.h
libsim_la_SOURCES += src/sim/queue.c src/sim/queue.h
libsim_la_SOURCES += src/sim/run.c src/sim/run.h
libsim_la_SOURCES += src/sim/segment.c src/sim/segment.h
libsim_la_SOURCES += src/sim/sim.c src/sim/sim.h
libsim_la_SOURCES += src/sim/stream.c src/sim/stream.h

# From here on: drivers. (Not liburing.la: that name belongs to the library we link.)

noinst_LTLIBRARIES += libdsfuring.la
libdsfuring_la_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
libdsfuring_la_SOURCES =
libdsfuring_la_SOURCES += src/uring/alone.c src/uring/alone.h
libdsfuring_la_SOURCES += src/uring/buffers.c src/uring/buffers.h
libdsfuring_la_SOURCES += src/uring/clock.c src/uring/clock.h
libdsfuring_la_SOURCES += src/uring/control.c src/uring/control.h
libdsfuring_la_SOURCES += src/uring/fidelity.c src/uring/fidelity.h
libdsfuring_la_SOURCES += src/uring/guard.c src/uring/guard.h
libdsfuring_la_SOURCES += src/uring/hold.c src/uring/hold.h
libdsfuring_la_SOURCES += src/uring/inbound.c src/uring/inbound.h
libdsfuring_la_SOURCES += src/uring/log.c src/uring/log.h
libdsfuring_la_SOURCES += src/uring/loop.c src/uring/loop.h
libdsfuring_la_SOURCES += src/uring/memory.c src/uring/memory.h
libdsfuring_la_SOURCES += src/uring/node_main.c src/uring/node_main.h
libdsfuring_la_SOURCES += src/uring/files.c src/uring/files.h
libdsfuring_la_SOURCES += src/uring/news.c src/uring/news.h
libdsfuring_la_SOURCES += src/uring/port.c src/uring/port.h
libdsfuring_la_SOURCES += src/uring/process.c src/uring/process.h
libdsfuring_la_SOURCES += src/uring/request.c src/uring/request.h
libdsfuring_la_SOURCES += src/uring/setup.c src/uring/setup.h
libdsfuring_la_SOURCES += src/uring/stream.c src/uring/stream.h
libdsfuring_la_SOURCES += src/uring/text.c src/uring/text.h
libdsfuring_la_SOURCES += src/uring/transmit.c src/uring/transmit.h
libdsfuring_la_SOURCES += src/uring/tun.c src/uring/tun.h

noinst_LTLIBRARIES += libnetns.la
libnetns_la_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
libnetns_la_SOURCES =
libnetns_la_SOURCES += netns/addr.c netns/addr.h
libnetns_la_SOURCES += netns/link.c netns/link.h
libnetns_la_SOURCES += netns/monitor.c netns/monitor.h
libnetns_la_SOURCES += netns/netns.h
libnetns_la_SOURCES += netns/nl.c netns/nl.h
libnetns_la_SOURCES += netns/ns.c netns/ns.h
libnetns_la_SOURCES += netns/qdisc.c netns/qdisc.h
libnetns_la_SOURCES += netns/route.c netns/route.h
libnetns_la_SOURCES += netns/spawn.c netns/spawn.h
libnetns_la_SOURCES += netns/sweep.c netns/sweep.h

noinst_LTLIBRARIES += libcli.la
libcli_la_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS) \
	-DDSF_LIBEXECDIR='"$(pkglibexecdir)"' -DDSF_DATADIR='"$(pkgdatadir)"'
libcli_la_SOURCES =
libcli_la_SOURCES += src/cli/channel.c src/cli/channel.h
libcli_la_SOURCES += src/cli/cmd_capture.c
libcli_la_SOURCES += src/cli/chaos.c src/cli/chaos.h
libcli_la_SOURCES += src/cli/cmd_chaos.c
libcli_la_SOURCES += src/cli/cmd_compare.c
libcli_la_SOURCES += src/cli/cmd_doctor.c
libcli_la_SOURCES += src/cli/cmd_down.c
libcli_la_SOURCES += src/cli/cmd_events.c
libcli_la_SOURCES += src/cli/cmd_exec.c
libcli_la_SOURCES += src/cli/cmd_expand.c
libcli_la_SOURCES += src/cli/cmd_graph.c
libcli_la_SOURCES += src/cli/graph.c src/cli/graph.h
libcli_la_SOURCES += src/cli/graph_svg.c
libcli_la_SOURCES += src/cli/cmd_help.c
libcli_la_SOURCES += src/cli/cmd_link.c
libcli_la_SOURCES += src/cli/cmd_list.c
libcli_la_SOURCES += src/cli/cmd_node.c
libcli_la_SOURCES += src/cli/cmd_plan.c
libcli_la_SOURCES += src/cli/plan_fail.c src/cli/plan_fail.h
libcli_la_SOURCES += src/cli/cmd_shell.c
libcli_la_SOURCES += src/cli/cmd_show.c
libcli_la_SOURCES += src/cli/cmd_explain.c
libcli_la_SOURCES += src/cli/lab_rows.c src/cli/lab_rows.h
libcli_la_SOURCES += src/cli/cmd_run.c
libcli_la_SOURCES += src/cli/cmd_sim.c
libcli_la_SOURCES += src/cli/cmd_status.c
libcli_la_SOURCES += src/cli/cmd_up.c
libcli_la_SOURCES += src/cli/cmd_validate.c
libcli_la_SOURCES += src/cli/commands.h
libcli_la_SOURCES += src/cli/compare.c src/cli/compare.h
libcli_la_SOURCES += src/cli/drill.c src/cli/drill.h
libcli_la_SOURCES += src/cli/fidelity.c src/cli/fidelity.h
libcli_la_SOURCES += src/cli/json_span.c src/cli/json_span.h
libcli_la_SOURCES += src/cli/lab.c src/cli/lab.h
libcli_la_SOURCES += src/cli/lab_call.c src/cli/lab_call.h
libcli_la_SOURCES += src/cli/lab_client.c
libcli_la_SOURCES += src/cli/lab_down.c src/cli/lab_down.h
libcli_la_SOURCES += src/cli/lab_enter.c src/cli/lab_enter.h
libcli_la_SOURCES += src/cli/lab_limits.c src/cli/lab_limits.h
libcli_la_SOURCES += src/cli/lab_status.c src/cli/lab_status.h
libcli_la_SOURCES += src/cli/log.c src/cli/log.h
libcli_la_SOURCES += src/cli/options.c src/cli/options.h
libcli_la_SOURCES += src/cli/output.c src/cli/output.h
libcli_la_SOURCES += src/cli/sim_drill.c src/cli/sim_drill.h
libcli_la_SOURCES += src/cli/supervisor.c src/cli/supervisor.h
libcli_la_SOURCES += src/cli/supervisor_build.c
libcli_la_SOURCES += src/cli/supervisor_call.c src/cli/supervisor_call.h
libcli_la_SOURCES += src/cli/supervisor_client.c
libcli_la_SOURCES += src/cli/supervisor_drain.c
libcli_la_SOURCES += src/cli/supervisor_event.c
libcli_la_SOURCES += src/cli/supervisor_external.c
libcli_la_SOURCES += src/cli/supervisor_heal.c
libcli_la_SOURCES += src/cli/supervisor_job.c
libcli_la_SOURCES += src/cli/supervisor_link.c
libcli_la_SOURCES += src/cli/supervisor_log.c
libcli_la_SOURCES += src/cli/supervisor_node.c
libcli_la_SOURCES += src/cli/supervisor_op.c
libcli_la_SOURCES += src/cli/supervisor_process.c
libcli_la_SOURCES += src/cli/supervisor_ready.c
libcli_la_SOURCES += src/cli/supervisor_status.c
libcli_la_SOURCES += src/cli/topology.c src/cli/topology.h
libcli_la_SOURCES += src/cli/workload.c src/cli/workload.h
libcli_la_SOURCES += src/cli/units.c src/cli/units.h

# What a program links: users before what they use.
DSF_CORE_LIBS = libsim.la libview.la libnode.la libtopo.la libworkload.la libmetaroce.la libbgp.la \
	libfsdb.la libip.la libfabric.la libbase.la $(CJSON_LIBS)
DSF_LIVE_LIBS = libcli.la libdsfuring.la libnetns.la $(DSF_CORE_LIBS) $(URING_LIBS) $(MNL_LIBS) \
	$(NLROUTE_LIBS)

bin_PROGRAMS += dsfemu
dsfemu_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
dsfemu_SOURCES = src/cli/main.c
dsfemu_LDADD = $(DSF_LIVE_LIBS)

# The program finds topologies and drills beside itself, also where the build is not in the source
# tree.
all-local: data-links
data-links:
	@test -e topologies || $(LN_S) '$(abs_top_srcdir)/topologies' topologies
	@test -e drills || $(LN_S) '$(abs_top_srcdir)/drills' drills
.PHONY: data-links
distclean-local:
	@test ! -L topologies || rm -f topologies
	@test ! -L drills || rm -f drills

# One node as a program of its own: for a debugger, and labs without supervisor.
pkglibexec_PROGRAMS += dsf-switch dsf-host
dsf_switch_SOURCES = src/uring/dsf_switch.c
dsf_switch_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
dsf_switch_LDADD = $(DSF_LIVE_LIBS)
dsf_host_SOURCES = src/uring/dsf_host.c
dsf_host_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
dsf_host_LDADD = $(DSF_LIVE_LIBS)
