#%PAM-1.0
# Written by rackwright; changes made here are undone. The distribution's own, with two
# differences: after the account checks, who is not in access-slurm.conf needs a job here, and
# joins its cgroup; and no pam_systemd, which would take the session out of that cgroup again.
auth       substack     password-auth
auth       include      postlogin
account    required     pam_sepermit.so
account    required     pam_nologin.so
account    include      password-auth
account    sufficient   pam_access.so accessfile=/etc/security/access-slurm.conf
# Without the module all other users are refused.
account    required     pam_slurm_adopt.so action_adopt_failure=deny action_generic_failure=deny
password   include      password-auth
session    required     pam_selinux.so close
session    required     pam_loginuid.so
session    required     pam_selinux.so open env_params
session    required     pam_namespace.so
session    optional     pam_keyinit.so force revoke
session    optional     pam_motd.so
session    required     pam_limits.so
session    required     pam_unix.so
-session   optional     pam_sss.so
session    include      postlogin
