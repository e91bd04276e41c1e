/**
 * The special address ranges, from the IANA IPv4 and IPv6 special-purpose registries and RFC 4291, 6598, 6666, 9602, 9637.
 * Of IPv6 only `GLOBAL_UNICAST` is reachable at all, so its table matters twice: for what to cut out, and for a reason to give.
 */
export const IPV4_RANGES: readonly (readonly [cidr: string, reason: string])[] = [
  ['0.0.0.0/8', 'unspecified ("this network")'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'carrier-grade NAT'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'reserved for IETF protocols'],
  ['192.0.2.0/24', 'documentation'],
  ['192.31.196.0/24', 'AS112 sink'],
  ['192.52.193.0/24', 'multicast relays (AMT)'],
  ['192.88.99.0/24', '6to4 relays'],
  ['192.168.0.0/16', 'private'],
  ['192.175.48.0/24', 'AS112 sink'],
  ['198.18.0.0/15', 'benchmarking'],
  ['198.51.100.0/24', 'documentation'],
  ['203.0.113.0/24', 'documentation'],
  ['224.0.0.0/4', 'multicast'],
  ['255.255.255.255/32', 'broadcast'],
  ['240.0.0.0/4', 'reserved'],
];

export const GLOBAL_UNICAST = '2000::/3';

export const IPV6_RANGES: readonly (readonly [cidr: string, reason: string])[] = [
  ['::/128', 'unspecified'],
  ['::1/128', 'loopback'],
  ['::ffff:0:0/96', 'IPv4-mapped'],
  ['::ffff:0:0:0/96', 'IPv4-translated'],
  ['::/96', 'IPv4-compatible'],
  ['64:ff9b::/96', 'NAT64'],
  ['64:ff9b:1::/48', 'local NAT64'],
  ['100::/64', 'discard-only'],
  ['100:0:0:1::/64', 'dummy prefix'],
  ['2001::/32', 'Teredo'],
  ['2001:2::/48', 'benchmarking'],
  ['2001:10::/28', 'ORCHID'],
  ['2001:20::/28', 'ORCHIDv2'],
  ['2001::/23', 'reserved for IETF protocols'],
  ['2001:db8::/32', 'documentation'],
  ['2002::/16', '6to4'],
  ['2620:4f:8000::/48', 'AS112 sink'],
  ['3fff::/20', 'documentation'],
  ['5f00::/16', 'segment routing (SRv6)'],
  ['fc00::/7', 'unique local'],
  ['fe80::/10', 'link-local'],
  ['fec0::/10', 'site-local'],
  ['ff00::/8', 'multicast'],
];

/** Not opened by any `allowPrivate`: nothing there is a host of its own (Linux connects 0.0.0.0 and :: to itself). */
export const NEVER_OPENED: readonly string[] = [
  '0.0.0.0/8',
  '224.0.0.0/4',
  '255.255.255.255/32',
  '::/128',
  'ff00::/8',
];

/** IPv6 ranges that carry an IPv4 address, and the byte it starts at: opening the range does not open what it carries. */
export const CARRIERS: readonly (readonly [cidr: string, offset: number])[] = [
  ['::ffff:0:0/96', 12],
  ['::ffff:0:0:0/96', 12],
  ['::/96', 12],
  ['64:ff9b::/96', 12],
  ['64:ff9b:1::/48', 12],
  ['2002::/16', 2],
];

/** Addresses at which clouds hand out credentials, names and clocks to whoever asks. */
export const METADATA_ADDRESSES: readonly string[] = [
  '169.254.169.254', // AWS, GCP, Azure, OpenStack, DigitalOcean, Oracle, IBM, Hetzner, Vultr
  '169.254.169.253', // AWS resolver
  '169.254.169.123', // AWS clock
  '169.254.169.250', // AWS licence servers
  '169.254.169.251',
  '169.254.170.2', // ECS task credentials
  '169.254.170.23', // EKS pod identity
  '169.254.42.42', // Scaleway
  '169.254.0.23', // Tencent
  '168.63.129.16', // Azure wire server: a public address
  '100.100.100.200', // Alibaba
  '192.0.0.192', // Oracle classic
  'fd00:ec2::254', // AWS
  'fd00:ec2::253',
  'fd00:ec2::123',
  'fd00:ec2::23', // EKS pod identity
  'fd20:ce::254', // GCP
  'fd00:42::42', // Scaleway
  'fd00:c1::a9fe:a9fe', // Oracle
  'fe80::a9fe:a9fe', // OpenStack
];

/** Names under which they are found; refused whatever they resolve to. */
export const METADATA_NAMES: readonly string[] = [
  'metadata',
  'instance-data',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data.ec2.internal',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'api.metadata.cloud.ibm.com',
  'metadata.platformequinix.com',
  'metadata.packet.net',
  'rancher-metadata',
];
