dist_man_MANS =
dist_man_MANS += man/dsfemu.1
dist_man_MANS += man/dsfemu-drill.5
dist_man_MANS += man/dsfemu-topology.5
