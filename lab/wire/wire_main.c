// SPDX-License-Identifier: GPL-2.0-only
/*
 * wire: pairs of net devices joined by a line-rate cable that records when every
 * frame leaves and arrives. README.md says how to use it.
 */
#include <linux/module.h>

#include "wire.h"

static int __init wire_init(void)
{
	wire_noise_init();
	return wire_control_init();
}

/*
 * An open control file holds a module reference: no cable is created meanwhile.
 */
static void __exit wire_exit(void)
{
	wire_noise_stop();
	wire_cable_delete_all();
	wire_control_exit();
}

module_init(wire_init);
module_exit(wire_exit);
MODULE_DESCRIPTION("Line-rate cable between two net devices, with an exact record");
MODULE_LICENSE("GPL");
