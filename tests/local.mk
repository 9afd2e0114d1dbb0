# TESTS are TAP programs and .bats files, all through automake's TAP driver.
#
# A program's source is its name with .c and it links every core library, so adding a test is one
# line. A fuzz target takes main() from libreplay.la (an archive: only who lacks a main takes it)
# and replays tests/fuzz/corpus/<target>; with --enable-fuzzers it links libFuzzer instead.

TEST_EXTENSIONS = .bats
DSF_TAP_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(DSF_TAP_DRIVER)
BATS_LOG_DRIVER = $(DSF_TAP_DRIVER)
BATS_LOG_COMPILER = $(BATS)
AM_BATS_LOG_FLAGS = --tap
AM_TESTS_ENVIRONMENT = \
	DSFEMU='$(abs_top_builddir)/dsfemu'; export DSFEMU; \
	DSF_SOURCE='$(abs_top_srcdir)'; export DSF_SOURCE;

UNIT_TESTS =

# base
UNIT_TESTS += tests/unit/base_address
UNIT_TESTS += tests/unit/base_bitset
UNIT_TESTS += tests/unit/base_cursor
UNIT_TESTS += tests/unit/base_err
UNIT_TESTS += tests/unit/base_hash
UNIT_TESTS += tests/unit/base_heap
UNIT_TESTS += tests/unit/base_histogram
UNIT_TESTS += tests/unit/base_pool
UNIT_TESTS += tests/unit/base_rng
UNIT_TESTS += tests/unit/base_time
UNIT_TESTS += tests/unit/base_trace
UNIT_TESTS += tests/unit/base_units

# fabric
UNIT_TESTS += tests/unit/fabric_balance
UNIT_TESTS += tests/unit/fabric_cell
UNIT_TESTS += tests/unit/fabric_credit
UNIT_TESTS += tests/unit/fabric_packet
UNIT_TESTS += tests/unit/fabric_port
UNIT_TESTS += tests/unit/fabric_pressure
UNIT_TESTS += tests/unit/fabric_reach
UNIT_TESTS += tests/unit/fabric_reach_cell
UNIT_TESTS += tests/unit/fabric_reasm
UNIT_TESTS += tests/unit/fabric_spray
UNIT_TESTS += tests/unit/fabric_voq

# ip
UNIT_TESTS += tests/unit/ip_hops
UNIT_TESTS += tests/unit/ip_icmp
UNIT_TESTS += tests/unit/ip_ndp
UNIT_TESTS += tests/unit/ip_neighbor
UNIT_TESTS += tests/unit/ip_packet
UNIT_TESTS += tests/unit/ip_route
UNIT_TESTS += tests/unit/view_report
UNIT_TESTS += tests/unit/view_rows
UNIT_TESTS += tests/unit/view_show

# metaroce
UNIT_TESTS += tests/unit/metaroce_core
UNIT_TESTS += tests/unit/metaroce_wire

# bgp
UNIT_TESTS += tests/unit/bgp_core
UNIT_TESTS += tests/unit/bgp_hostile
UNIT_TESTS += tests/unit/bgp_many
UNIT_TESTS += tests/unit/bgp_policy
UNIT_TESTS += tests/unit/bgp_random
UNIT_TESTS += tests/unit/bgp_session
UNIT_TESTS += tests/unit/bgp_store
UNIT_TESTS += tests/unit/bgp_update
UNIT_TESTS += tests/unit/bgp_wire

# fsdb
UNIT_TESTS += tests/unit/fsdb_capture
UNIT_TESTS += tests/unit/fsdb_hostile
UNIT_TESTS += tests/unit/fsdb_mesh
UNIT_TESTS += tests/unit/fsdb_publish
UNIT_TESTS += tests/unit/fsdb_table
UNIT_TESTS += tests/unit/fsdb_wire
EXTRA_DIST += tests/unit/fsdb_net.h

# workload
UNIT_TESTS += tests/unit/workload_pattern

# topo
UNIT_TESTS += tests/unit/topo_bad
UNIT_TESTS += tests/unit/topo_bgp
UNIT_TESTS += tests/unit/topo_drill
UNIT_TESTS += tests/unit/topo_file
UNIT_TESTS += tests/unit/topo_fixed
UNIT_TESTS += tests/unit/topo_plan

# node
UNIT_TESTS += tests/unit/node_ethernet
UNIT_TESTS += tests/unit/node_host
UNIT_TESTS += tests/unit/node_queue
UNIT_TESTS += tests/unit/node_report
UNIT_TESTS += tests/unit/node_drill
UNIT_TESTS += tests/unit/node_router
UNIT_TESTS += tests/unit/node_routing
UNIT_TESTS += tests/unit/node_skew
UNIT_TESTS += tests/unit/node_switch

# view

# sim
UNIT_TESTS += tests/unit/sim_queue
UNIT_TESTS += tests/unit/sim_stream

# both drivers
UNIT_TESTS += tests/unit/driver_glue

# uring
UNIT_TESTS += tests/unit/uring_control
UNIT_TESTS += tests/unit/uring_port
UNIT_TESTS += tests/unit/uring_stream
UNIT_TESTS += tests/unit/uring_process

# netns
UNIT_TESTS += tests/unit/netns_link
UNIT_TESTS += tests/unit/netns_sweep

# cli
UNIT_TESTS += tests/unit/cli_channel
UNIT_TESTS += tests/unit/cli_json_span
UNIT_TESTS += tests/unit/cli_units

SIM_TESTS =
# Planted faults: what a drill has to find.
SIM_TESTS += tests/sim/drill
tests_sim_drill_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sim_link_set -Wl,--wrap=node_cells_forward \
	-Wl,--wrap=fabric_reach_output -Wl,--wrap=node_frame_input \
	-Wl,--wrap=node_expire -Wl,--wrap=node_output
# These link a generator of packets in place of the host.
FABRIC_SIM_SOURCES =
FABRIC_SIM_SOURCES += tests/sim/generator.c tests/sim/generator.h
FABRIC_SIM_SOURCES += tests/sim/lab.c tests/sim/lab.h
SIM_TESTS += tests/sim/bgp
tests_sim_bgp_SOURCES = tests/sim/bgp.c $(FABRIC_SIM_SOURCES)
tests_sim_bgp_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
SIM_TESTS += tests/sim/fabric_drain
tests_sim_fabric_drain_SOURCES = tests/sim/fabric_drain.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_cut
tests_sim_fabric_cut_SOURCES = tests/sim/fabric_cut.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_congestion
tests_sim_fabric_congestion_SOURCES = tests/sim/fabric_congestion.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_faults
tests_sim_fabric_faults_SOURCES = tests/sim/fabric_faults.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_figures
tests_sim_fabric_figures_SOURCES = tests/sim/fabric_figures.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_random
tests_sim_fabric_random_SOURCES = tests/sim/fabric_random.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_idle
tests_sim_fabric_idle_SOURCES = tests/sim/fabric_idle.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_resort
tests_sim_fabric_resort_SOURCES = tests/sim/fabric_resort.c $(FABRIC_SIM_SOURCES)
tests_sim_fabric_resort_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fabric_spray_next
SIM_TESTS += tests/sim/fabric_repeat
tests_sim_fabric_repeat_SOURCES = tests/sim/fabric_repeat.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_load
tests_sim_fabric_load_SOURCES = tests/sim/fabric_load.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fabric_window
tests_sim_fabric_window_SOURCES = tests/sim/fabric_window.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/fsdb
tests_sim_fsdb_SOURCES = tests/sim/fsdb.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/host_restart
SIM_TESTS += tests/sim/metaroce_faults
SIM_TESTS += tests/sim/metaroce_host
SIM_TESTS += tests/sim/metaroce_write
SIM_TESTS += tests/sim/hyperport
tests_sim_hyperport_SOURCES = tests/sim/hyperport.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/router
tests_sim_router_SOURCES = tests/sim/router.c $(FABRIC_SIM_SOURCES)
SIM_TESTS += tests/sim/router_host

FUZZ_TARGETS =
FUZZ_TARGETS += tests/fuzz/bgp_state
FUZZ_TARGETS += tests/fuzz/bgp_wire
FUZZ_TARGETS += tests/fuzz/metaroce_state
FUZZ_TARGETS += tests/fuzz/metaroce_wire
FUZZ_TARGETS += tests/fuzz/cli_json_span
FUZZ_TARGETS += tests/fuzz/fabric_reach
FUZZ_TARGETS += tests/fuzz/fabric_reasm
FUZZ_TARGETS += tests/fuzz/fabric_train
FUZZ_TARGETS += tests/fuzz/fsdb_mesh
FUZZ_TARGETS += tests/fuzz/fsdb_wire
FUZZ_TARGETS += tests/fuzz/ip_ndp
FUZZ_TARGETS += tests/fuzz/ip_packet
FUZZ_TARGETS += tests/fuzz/node_frame
FUZZ_TARGETS += tests/fuzz/node_router
FUZZ_TARGETS += tests/fuzz/sim_stream
FUZZ_TARGETS += tests/fuzz/topo_drill
FUZZ_TARGETS += tests/fuzz/topo_file

# bats files: these need the dsfemu program, and those that need root skip without it
BATS_TESTS =
BATS_TESTS += tests/integration/balance.bats
BATS_TESTS += tests/integration/bgp.bats
BATS_TESTS += tests/integration/capture.bats
BATS_TESTS += tests/integration/chaos.bats
BATS_TESTS += tests/integration/clos.bats
BATS_TESTS += tests/integration/compare.bats
BATS_TESTS += tests/integration/completion.bats
BATS_TESTS += tests/integration/drain.bats
BATS_TESTS += tests/integration/dissect.bats
BATS_TESTS += tests/integration/exec.bats
BATS_TESTS += tests/integration/external.bats
BATS_TESTS += tests/integration/fabric.bats
BATS_TESTS += tests/integration/fidelity.bats
BATS_TESTS += tests/integration/files.bats
BATS_TESTS += tests/integration/fsdb.bats
BATS_TESTS += tests/integration/hyperport.bats
BATS_TESTS += tests/integration/kernel.bats
BATS_TESTS += tests/integration/l2-zone.bats
BATS_TESTS += tests/integration/lifecycle.bats
BATS_TESTS += tests/integration/link.bats
BATS_TESTS += tests/integration/node.bats
BATS_TESTS += tests/integration/sim.bats
BATS_TESTS += tests/integration/uring.bats

# These need other routers, and skip without them.
BATS_TESTS += tests/interop/bgp.bats
BATS_TESTS += tests/interop/conform.bats
BATS_TESTS += tests/interop/devices.bats
BATS_TESTS += tests/interop/hostile.bats
EXTRA_DIST += tests/interop/conform.bash tests/interop/devices.bash tests/interop/lib.bash

EXTRA_DIST += tests/fuzz/corpus tests/sim/seeds tests/sim/drill_balance.json tests/sim/drill_queues.json tests/integration/lib.bash tests/integration/traffic.bash tests/descriptors.h tests/hex.h tests/memory.h tests/unit/bgp_net.h tests/source.h tests/tap.h tests/topologies $(BATS_TESTS)

if FUZZERS
LDADD = $(FUZZ_LDFLAGS) $(DSF_CORE_LIBS)
check_PROGRAMS += $(FUZZ_TARGETS)
else
check_LTLIBRARIES += libreplay.la
libreplay_la_SOURCES = tests/fuzz/replay.c
libreplay_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
LDADD = libreplay.la $(DSF_CORE_LIBS)
check_PROGRAMS += $(UNIT_TESTS) $(SIM_TESTS) $(FUZZ_TARGETS)
check_PROGRAMS += tests/interop/bgp_speaker tests/interop/conform
TESTS += $(UNIT_TESTS) $(SIM_TESTS) $(FUZZ_TARGETS)
if HAVE_BATS
TESTS += $(BATS_TESTS)
endif
endif

# What scripts/check asks for: all tests that need no rights, and the fuzz targets.
check-core:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(UNIT_TESTS) $(SIM_TESTS) $(FUZZ_TARGETS)'

fuzzers: $(FUZZ_TARGETS)

list-fuzzers:
	@echo $(FUZZ_TARGETS)

.PHONY: check-core fuzzers list-fuzzers

# The BGP core over kernel TCP.
tests_interop_bgp_speaker_SOURCES = tests/interop/bgp_speaker.c
tests_interop_bgp_speaker_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_interop_bgp_speaker_LDADD = libbgp.la libbase.la

# Judges BGP speakers; of ours it knows nothing.
tests_interop_conform_SOURCES = tests/interop/conform.c tests/interop/conform.h \
	tests/interop/conform_heard.c tests/interop/conform_hostile.c \
	tests/interop/conform_messages.c tests/interop/conform_open.c tests/interop/conform_peer.c \
	tests/interop/conform_routes.c tests/interop/conform_state.c tests/interop/conform_update.c
tests_interop_conform_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_interop_conform_LDADD = libbase.la

# The driver's tests bring a fake node of their own in place of libnode.
URING_TEST_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
URING_TEST_LDADD = libdsfuring.la libnetns.la libview.la libtopo.la libworkload.la libmetaroce.la \
	libbgp.la libfsdb.la libip.la libfabric.la libbase.la $(CJSON_LIBS) $(URING_LIBS) $(MNL_LIBS)
EXTRA_DIST += tests/unit/uring_fake.h tests/unit/uring_net.h tests/integration/helpers/bare-lab \
	tests/sim/hosts.h tests/sim/metaroce_pipe.h
tests_unit_uring_control_CPPFLAGS = $(URING_TEST_CPPFLAGS)
tests_unit_uring_control_LDADD = $(URING_TEST_LDADD)
tests_unit_uring_port_CPPFLAGS = $(URING_TEST_CPPFLAGS)
tests_unit_uring_port_LDADD = $(URING_TEST_LDADD)
tests_unit_uring_stream_CPPFLAGS = $(URING_TEST_CPPFLAGS)
tests_unit_uring_stream_LDADD = $(URING_TEST_LDADD)
tests_unit_uring_process_CPPFLAGS = $(URING_TEST_CPPFLAGS)
tests_unit_uring_process_LDADD = $(URING_TEST_LDADD)

# These make namespaces, as root; without they skip.
NETNS_TEST_LDADD = libnetns.la libbase.la $(MNL_LIBS)
tests_unit_netns_link_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_unit_netns_link_LDADD = $(NETNS_TEST_LDADD)
tests_unit_netns_sweep_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_unit_netns_sweep_LDADD = $(NETNS_TEST_LDADD)

# Parts of the CLI that stand alone.
tests_unit_cli_channel_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_unit_cli_channel_LDADD = libcli.la
tests_unit_cli_json_span_LDADD = libcli.la
tests_unit_cli_units_LDADD = libcli.la libbase.la
tests_fuzz_cli_json_span_LDADD = libcli.la $(LDADD)
# Stands between both drivers and the node, and below the emulator's process: all of it is the real
# thing but clock, ring and news of links.
tests_unit_driver_glue_CPPFLAGS = $(DSF_DRIVER_CPPFLAGS)
tests_unit_driver_glue_LDADD = libdsfuring.la libnetns.la $(DSF_CORE_LIBS) $(URING_LIBS) $(MNL_LIBS)
tests_unit_driver_glue_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=node_new -Wl,--wrap=node_free \
	-Wl,--wrap=node_frame_input -Wl,--wrap=node_carrier -Wl,--wrap=node_deadline \
	-Wl,--wrap=node_expire -Wl,--wrap=node_output -Wl,--wrap=node_frame_done \
	-Wl,--wrap=node_command -Wl,--wrap=node_ready -Wl,--wrap=clock_gettime \
	-Wl,--wrap=uring_loop_flush -Wl,--wrap=uring_loop_wait -Wl,--wrap=netns_monitor_read
EXTRA_DIST += tests/unit/glue_kernel.h tests/unit/glue_lab.h tests/unit/glue_list.h
