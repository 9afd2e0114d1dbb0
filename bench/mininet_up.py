"""Mininet builds a topology like a dsfemu file: a node per node, a veth pair per link.

usage: mininet_up.py EXPANDED.json     prints "UP_MS DOWN_MS"
"""
import json
import sys
import time

from mininet.log import setLogLevel
from mininet.net import Mininet

setLogLevel("critical")
lab = json.load(open(sys.argv[1]))
start = time.monotonic()
net = Mininet(controller=None)
# Names are short: Mininet's interface names are NODE-ethN and may have 15 characters.
nodes = {n["name"]: net.addHost(f"n{i}", ip=None) for i, n in enumerate(lab["nodes"])}
for link in lab["links"]:
    net.addLink(nodes[link["a"].split(":")[0]], nodes[link["b"].split(":")[0]])
net.start()
up = time.monotonic()
net.stop()
down = time.monotonic()
print(f"{(up - start) * 1e3:.1f} {(down - up) * 1e3:.1f}")
