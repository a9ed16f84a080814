// SPDX-License-Identifier: GPL-2.0-only
/* Creates, resets, joins and deletes cables. */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/ctype.h>
#include <linux/list.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "wire.h"

static LIST_HEAD(cables);		/* sorted by number */
static DEFINE_MUTEX(cables_mutex);	/* taken before RTNL */

static bool name_valid(const char *name)
{
	const char *p;

	for (p = name; *p; p++)
		if (!isalnum(*p) && !strchr("._-", *p))
			return false;
	return strcmp(name, ".") && strcmp(name, "..") && strcmp(name, "create") &&
	       strcmp(name, "delete") && strcmp(name, "noise") && strcmp(name, "share");
}

static int settings_check(const struct wire_settings *set)
{
	if (!name_valid(set->name)) {
		pr_err("name=%s: not a name for a cable\n", set->name);
		return -EINVAL;
	}
	if (!dev_valid_name(set->ifname[0]) || !dev_valid_name(set->ifname[1]) ||
	    !strcmp(set->ifname[0], set->ifname[1])) {
		pr_err("a=%s b=%s: two interface names are expected\n",
		       set->ifname[0], set->ifname[1]);
		return -EINVAL;
	}
	return 0;
}

static struct wire_cable *find_cable(const char *name)
{
	struct wire_cable *cable;

	list_for_each_entry(cable, &cables, list)
		if (!strcmp(cable->set.name, name))
			return cable;
	return NULL;
}

/* Gives the cable the lowest free number and inserts it in order of number. */
static void cable_enlist(struct wire_cable *cable)
{
	struct wire_cable *other;

	cable->number = 1;
	list_for_each_entry(other, &cables, list) {
		if (other->number != cable->number)
			break;
		cable->number++;
	}
	list_add_tail(&cable->list, &other->list);
}

static int devices_register(struct wire_cable *cable)
{
	struct net_device *dev;
	int side, err = 0;

	rtnl_lock();
	for (side = 0; side < 2 && !err; side++) {
		dev = cable->end[side]->dev;
		dev_net_set(dev, current->nsproxy->net_ns);
		err = register_netdevice(dev);
	}
	if (err && side == 2)
		unregister_netdevice(cable->end[0]->dev);
	rtnl_unlock();
	return err;
}

static int devices_create(struct wire_cable *cable)
{
	struct net_device *dev;
	int side, err;

	for (side = 0; side < 2; side++) {
		dev = wire_dev_create(cable, side);
		if (IS_ERR(dev)) {
			err = PTR_ERR(dev);
			goto free;
		}
		cable->end[side] = netdev_priv(dev);
	}
	cable->end[0]->peer = cable->end[1];
	cable->end[1]->peer = cable->end[0];
	err = devices_register(cable);
	if (!err)
		return 0;
	pr_err("name=%s: the devices cannot be registered: %d\n", cable->set.name, err);
free:
	while (side-- > 0)
		wire_dev_free(cable->end[side]->dev);
	return err;
}

int wire_cable_create(const struct wire_settings *set)
{
	struct wire_cable *cable;
	int err = settings_check(set);

	if (err)
		return err;
	cable = kzalloc(sizeof(*cable), GFP_KERNEL);
	if (!cable)
		return -ENOMEM;
	cable->set = *set;
	mutex_init(&cable->read_mutex);

	mutex_lock(&cables_mutex);
	if (find_cable(set->name)) {
		pr_err("name=%s: there is such a cable\n", set->name);
		err = -EEXIST;
		goto unlock;
	}
	cable_enlist(cable);
	err = devices_create(cable);
	if (err)
		list_del(&cable->list);
	else
		wire_debugfs_add(cable);
unlock:
	mutex_unlock(&cables_mutex);
	if (err)
		kfree(cable);
	return err;
}

/*
 * Removes a cable. Both devices close before either is freed, because each end
 * accesses the other.
 */
static void cable_remove(struct wire_cable *cable)
{
	LIST_HEAD(gone);

	wire_debugfs_remove(cable);
	wire_share_leave(cable->end[0]);
	wire_share_leave(cable->end[1]);
	rtnl_lock();
	unregister_netdevice_queue(cable->end[0]->dev, &gone);
	unregister_netdevice_queue(cable->end[1]->dev, &gone);
	unregister_netdevice_many(&gone);
	rtnl_unlock();
	wire_dev_free(cable->end[0]->dev);
	wire_dev_free(cable->end[1]->dev);
	list_del(&cable->list);
	kfree(cable);
}

int wire_cable_delete(const char *name)
{
	struct wire_cable *cable;

	mutex_lock(&cables_mutex);
	cable = find_cable(name);
	if (cable)
		cable_remove(cable);
	mutex_unlock(&cables_mutex);
	if (!cable)
		pr_err("name=%s: there is no such cable\n", name);
	return cable ? 0 : -ENOENT;
}

/*
 * Makes the frames that end @side of cable @from sends enter the far port of
 * end @side of cable @into.
 */
int wire_cable_share(const char *into, const char *from, int side)
{
	struct wire_cable *to, *of;
	int err = -ENOENT;

	mutex_lock(&cables_mutex);
	to = find_cable(into);
	of = find_cable(from);
	if (to && of)
		err = wire_share_join(to->end[side], of->end[side]);
	else
		pr_err("name=%s: there is no such cable\n", to ? from : into);
	mutex_unlock(&cables_mutex);
	return err;
}

void wire_cable_delete_all(void)
{
	struct wire_cable *cable, *next;

	mutex_lock(&cables_mutex);
	list_for_each_entry_safe(cable, next, &cables, list)
		cable_remove(cable);
	mutex_unlock(&cables_mutex);
}
