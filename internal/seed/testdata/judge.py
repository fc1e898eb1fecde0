"""What cloud-init itself makes of seeds.

judge.py image FILE...  for each ISO image, what the NoCloud data source reads
                        from it, as JSON. The volume is found with blkid, as
                        cloud-init does; mounting is replaced by isoinfo, since
                        not every kernel can mount ISO 9660.
judge.py inputs         reads a JSON list of {kind, text (base64)} and prints,
                        for each, what cloud-init complains about.

Nothing of an input is executed but the part handlers, which are ours.
"""

import base64
import json
import logging
import os
import subprocess
import sys
import tempfile

from cloudinit import handlers, helpers, net, stages, user_data, util
from cloudinit.handlers.boot_hook import BootHookPartHandler
from cloudinit.handlers.cloud_config import CloudConfigPartHandler
from cloudinit.handlers.jinja_template import JinjaTemplatePartHandler
from cloudinit.handlers.shell_script import ShellScriptPartHandler
from cloudinit.net.network_state import parse_net_config_data
from cloudinit.settings import PER_INSTANCE
from cloudinit.sources import DataSourceNoCloud


class Complaints(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


class BootHook(BootHookPartHandler):
    def handle_part(self, *_args):  # it would run the hook
        pass


def paths_below(top):
    dirs = {"cloud_dir": top + "/cloud", "run_dir": top + "/run", "templates_dir": top}
    paths = helpers.Paths(dirs)
    paths.seed_dir = top + "/seed"
    os.makedirs(top + "/cloud/instance", exist_ok=True)
    os.makedirs(top + "/run", exist_ok=True)
    paths.get_ipath = lambda name=None: top + "/cloud/instance/" + (paths.lookups.get(name) or "")
    for sub in ("handlers", "scripts", "boothooks"):
        os.makedirs(top + "/cloud/instance/" + sub, exist_ok=True)
    util.write_file(paths.get_runpath("instance_data_sensitive"), json.dumps({"v1": {"region": "x"}}))
    return paths


def judge_user(text, top):
    paths = paths_below(top)
    known = helpers.ContentHandlers()
    subs = [CloudConfigPartHandler(paths), ShellScriptPartHandler(paths)]
    for h in subs + [BootHook(paths, None), JinjaTemplatePartHandler(paths, sub_handlers=subs)]:
        known.register(h)
    sys.path.insert(0, top)
    data = {"handlers": known, "handlerdir": top, "data": None, "frequency": PER_INSTANCE, "handlercount": 0, "excluded": []}
    for h in subs:
        handlers.call_begin(h, None, PER_INSTANCE)
    parts = []

    def callback(data, filename, payload, headers):
        parts.append(payload)
        handlers.walker_callback(data, filename, payload, headers)

    handlers.walk(user_data.UserDataProcessor(paths).process(text), callback, data=data)
    sys.path.remove(top)
    sys.modules.pop("part-handler-000", None)
    return [] if parts else ["nothing of it is handled"]


def source(top):
    return DataSourceNoCloud.DataSourceNoCloud({}, None, paths_below(top))


def judge_files(kind, text, top):
    files = {"user-data": b"", "meta-data": b"instance-id: x\n"}
    files[kind] = text
    for name, content in files.items():
        util.write_file(top + "/seed/nocloud/" + name, content)
    ds = source(top)
    if not ds._get_data():
        return ["it is no seed"]
    if kind == "meta-data":
        got = ds.get_instance_id()
        return [] if got.strip() and got not in ("nocloud", "None") else ["instance-id is %r" % got]
    config = stages.Init._remove_top_level_network_key(None, ds.network_config)
    if config and not net.is_disabled_cfg(config):
        parse_net_config_data(config)
    return []


def inputs():
    util.find_devs_with = lambda *_args, **_kwargs: []  # seeds of this machine are not asked
    verdicts = []
    log = logging.getLogger()
    for case in json.load(sys.stdin):
        text = base64.b64decode(case["text"])
        complaints = Complaints()
        log.handlers = [complaints]
        with tempfile.TemporaryDirectory() as top:
            try:
                more = judge_user(text, top) if case["kind"] == "user-data" else judge_files(case["kind"], text, top)
            except Exception as e:  # cloud-init gives up
                more = [repr(e)]
        verdicts.append(complaints.lines + (more or []))
    print(json.dumps(verdicts))


def image(iso):
    def find(criteria, **_kwargs):
        name, _, value = criteria.partition("=")
        cmd = ["blkid", "-p", "-o", "value", "-s", name, iso]
        found = subprocess.run(cmd, stdout=subprocess.PIPE, text=True).stdout.strip()
        return [iso] if found == value else []

    def mount(dev, callback, data=None, **_kwargs):
        with tempfile.TemporaryDirectory() as top:
            listing = subprocess.run(["isoinfo", "-R", "-f", "-i", dev], check=True, stdout=subprocess.PIPE, text=True)
            for name in listing.stdout.split():
                with open(top + name, "wb") as f:
                    subprocess.run(["isoinfo", "-R", "-x", name, "-i", dev], check=True, stdout=f)
            return callback(top, data)

    util.find_devs_with, util.mount_cb = find, mount
    with tempfile.TemporaryDirectory() as top:
        ds = source(top)
        found = ds._get_data()
        return {
            "found": found,
            "user-data": util.decode_binary(ds.userdata_raw) if found else None,
            "meta-data": ds.metadata,
            "network-config": ds.network_config if found else None,
        }


logging.getLogger().setLevel(logging.WARNING)
DataSourceNoCloud.dmi.read_dmi_data = lambda _key: None  # this machine's are not a guest's
util.get_cmdline = lambda: ""
if sys.argv[1] == "inputs":
    inputs()
else:
    print(json.dumps([image(f) for f in sys.argv[2:]]))
