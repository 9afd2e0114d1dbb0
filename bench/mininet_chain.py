#!/usr/bin/python3
"""Mininet with userspace Open vSwitch: what the chain benchmark is compared with.

usage: mininet_chain.py chain BLAST SINK PAYLOAD-BYTES SECONDS [PACKETS-PER-SECOND]
       mininet_chain.py ping COUNT

Runs in the network namespace it is started in (scripts/bench gives it one of its own, with its own
ovsdb-server and ovs-vswitchd) and prints one JSON object.
"""
import json
import re
import sys
import time

from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import Topo


class UserSwitch(OVSSwitch):
    """No controller, forwarding by learning, packets in userspace."""

    def __init__(self, name, **options):
        super().__init__(name, datapath="user", failMode="standalone", **options)


class Chain(Topo):
    def build(self):
        first, last = self.addHost("h1"), self.addHost("h2")
        switches = [self.addSwitch(f"s{i}") for i in (1, 2, 3)]
        self.addLink(first, switches[0])
        self.addLink(switches[0], switches[1])
        self.addLink(switches[1], switches[2])
        self.addLink(switches[2], last)


def start(topo):
    net = Mininet(topo=topo, switch=UserSwitch, controller=None, autoSetMacs=True)
    net.start()
    return net


def wide(net):
    """Jumbo frames on every interface, and checksums that a userspace switch passes on."""
    for node in net.hosts + net.switches:
        for interface in node.intfList():
            if interface.name != "lo":
                node.cmd(f"ip link set {interface.name} mtu 9000")
                node.cmd(f"ethtool -K {interface.name} tx off")


def chain(blast, sink, size, seconds, rate):
    net = start(Chain())
    first, last = net.get("h1", "h2")
    wide(net)
    first.cmd(f"ping -c 3 {last.IP()}")
    receiver = last.popen([sink, "9000", "1"])
    time.sleep(0.3)
    sender = first.popen([blast, last.IP(), "9000", size, seconds] + rate)
    sent = json.loads(sender.communicate()[0])
    received = json.loads(receiver.communicate()[0])
    net.stop()
    return {"blast": sent, "sink": received}


def ping(count):
    net = start(Chain())
    first, last = net.get("h1", "h2")
    first.cmd(f"ping -c 3 {last.IP()}")
    text = first.cmd(f"ping -q -i 0.01 -c {count} {last.IP()}")
    net.stop()
    average = re.search(r"= [0-9.]+/([0-9.]+)/", text)
    return {"average_ms": float(average.group(1)) if average else None}


def main():
    setLogLevel("error")
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "chain":
        result = chain(*arguments[:4], arguments[4:5])
    elif command == "ping":
        result = ping(int(arguments[0]))
    else:
        sys.exit(__doc__)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
